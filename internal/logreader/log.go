//go:build linux

package logreader

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/capture"
)

const (
	// wordsLimit is how long a worker's last words are waited for: a reader
	// that died is replaced within it, and a disk that hangs has its own limit.
	wordsLimit = 5 * time.Second
	tailLimit  = time.Second
)

// Log is one log that the reader keeps. Its methods are safe for concurrent
// use, and none but LastWords, Tail and Close waits for the reader.
type Log struct {
	reader *Reader
	name   string
	file   string

	// Under reader.mu.
	options capture.Options
	feeds   []*feed
	dirty   bool // the reader does not know all of it
	closed  bool

	before  atomic.Uint64 // lines that earlier readers lost, and notes that never left
	current atomic.Uint64 // lines that this reader lost
}

// feed is a FIFO of the log, open but never read by us, so that what is in it
// outlives a reader that dies.
type feed struct {
	fd       int // a bare number: the runtime's poller would wake us at every write
	dev, ino uint64
	rest     []byte // beginning of a line, from a reader that handed over
	sent     bool   // to the present reader
}

// Log makes the log name known, with its file and no FIFO yet; Track begins to
// read.
func (r *Reader) Log(name, file string, o capture.Options) *Log {
	l := &Log{reader: r, name: name, file: file, options: o, dirty: true}
	r.mu.Lock()
	r.logs[name] = l
	r.mu.Unlock()
	return l
}

// Track makes the reader read the FIFO at path, beside the ones that it reads
// already: also one that was removed keeps being read until nobody writes to
// it. Track of the same FIFO again changes nothing.
func (l *Log) Track(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("open FIFO %s: %w", path, err)
	}
	if !l.add(fd, nil) {
		unix.Close(fd)
	}
	return nil
}

// TrackOutput does the same for the FIFO that a running process has as its
// descriptor 1, if it is one: the path may lead to another one by now.
func (l *Log) TrackOutput(pid int) {
	path := fmt.Sprintf("/proc/%d/fd/1", pid)
	// Opened without waiting and asked before: opening can have effects on what is no FIFO.
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil && !l.add(fd, nil) {
		unix.Close(fd)
	}
}

// add takes the descriptor, or says that it has the FIFO already.
func (l *Log) add(fd int, rest []byte) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return false
	}
	l.reader.mu.Lock()
	defer l.reader.mu.Unlock()
	for _, f := range l.feeds {
		if f.dev == uint64(st.Dev) && f.ino == st.Ino {
			if len(rest) > 0 {
				f.rest = rest
			}
			return false
		}
	}
	l.feeds = append(l.feeds, &feed{fd: fd, dev: uint64(st.Dev), ino: st.Ino, rest: rest})
	l.touchLocked()
	return true
}

// SetOptions changes how the log is kept.
func (l *Log) SetOptions(o capture.Options) {
	l.reader.mu.Lock()
	defer l.reader.mu.Unlock()
	l.options = o
	l.touchLocked()
}

func (l *Log) touchLocked() {
	l.dirty = true
	poke(l.reader.poke)
}

// LastWords returns when all that was written before is in the file, and gives
// the last n lines since the LastWords before. Waits 5 s at most.
func (l *Log) LastWords(n int) []string { return l.ask(opWords, n, wordsLimit) }

// Tail is the last n lines, at most 100; none if the reader does not answer
// within a second.
func (l *Log) Tail(n int) []string { return l.ask(opTail, n, tailLimit) }

func (l *Log) ask(op string, n int, limit time.Duration) []string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		reply, err := l.reader.ask(ctx, &message{Op: op, Name: l.name, N: n})
		if err == nil {
			return reply.Lines
		}
		if err != errGone {
			return nil
		}
	}
}

// Note adds a line of the supervisor's own, marked "standbyd: ". It never
// waits; if too many are on their way, it is dropped and counted.
func (l *Log) Note(line string) {
	line = strings.ToValidUTF8(line, "\uFFFD")
	select {
	case l.reader.out <- &question{message: message{Op: opNote, Name: l.name, Line: line}}:
	default:
		l.before.Add(1)
	}
}

// Dropped counts the lines that are not in the file, over all readers that
// this supervisor has had.
func (l *Log) Dropped() uint64 { return l.before.Load() + l.current.Load() }

// Close finishes the log: what was written before is on disk, unless that
// takes more than 5 s, and the FIFOs are let go of.
func (l *Log) Close() error {
	r := l.reader
	r.mu.Lock()
	if l.closed {
		r.mu.Unlock()
		return nil
	}
	l.closed = true
	if r.logs[l.name] == l {
		delete(r.logs, l.name)
	}
	r.mu.Unlock()
	l.ask(opUntrack, 0, wordsLimit)
	r.mu.Lock()
	defer r.mu.Unlock()
	l.dropFeedsLocked()
	return nil
}

func (l *Log) dropFeedsLocked() {
	for _, f := range l.feeds {
		unix.Close(f.fd)
	}
	l.feeds = nil
}

// pruneLocked lets go of FIFOs that were removed and that nobody else has
// open: of them, we are the last.
func (l *Log) pruneLocked() {
	for i := 0; i < len(l.feeds)-1; {
		f := l.feeds[i]
		var st unix.Stat_t
		if err := unix.Fstat(f.fd, &st); err == nil && (st.Nlink > 0 || f.held()) {
			i++
			continue
		}
		unix.Close(f.fd)
		l.feeds = append(l.feeds[:i], l.feeds[i+1:]...)
	}
}

// held: somebody can write to the FIFO, or something is in it.
func (f *feed) held() bool {
	if n, err := unix.IoctlGetInt(f.fd, unix.TIOCINQ); err != nil || n > 0 {
		return true
	}
	w, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", f.fd), syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	syscall.Close(w)
	p := []unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}}
	_, err = unix.Poll(p, 0)
	return err != nil || p[0].Revents&unix.POLLHUP == 0
}
