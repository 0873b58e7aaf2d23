//go:build unix

package capture

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// source is one FIFO that a Capture reads. There are several if the one at a
// path was removed, and a worker goes on to write into it.
type source struct {
	file *os.File
	conn syscall.RawConn

	// Owned by the Capture's mu.
	split   splitter
	stopped bool
}

// Open opens a FIFO for Add or Keep: to read, without waiting for a writer.
func Open(path string) (*os.File, error) {
	fd, err := openFIFO(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	enlarge(fd)
	return os.NewFile(uintptr(fd), path), nil
}

// Add makes the capture read one more FIFO, beginning with rest, a line whose
// end may come. The description behind file must be the capture's alone, for
// the lock is on it; the file is the capture's from now on, also after an
// error. ErrRead if somebody else reads the FIFO.
func (c *Capture) Add(file *os.File, rest []byte) error {
	conn, err := file.SyscallConn()
	if err == nil {
		var lerr error
		if err = conn.Control(func(fd uintptr) { lerr = lockReader(int(fd)) }); err == nil {
			err = lerr
		}
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("capture %s: %w", file.Name(), err)
	}
	s := &source{file: file, conn: conn}
	s.split.rest = slices.Clone(rest)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // nobody would stop its loop any more
		file.Close()
		return fmt.Errorf("capture %s: %w", file.Name(), os.ErrClosed)
	}
	c.sources = append(c.sources, s)
	c.readers.Go(func() { c.readLoop(s) })
	return nil
}

// Reads tells whether the capture has the FIFO behind fd already, by another
// description.
func (c *Capture) Reads(fd int) bool {
	var asked unix.Stat_t
	if unix.Fstat(fd, &asked) != nil {
		return false
	}
	return slices.ContainsFunc(c.list(), func(s *source) bool {
		var own unix.Stat_t
		var err error
		cerr := s.conn.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &own) })
		return cerr == nil && err == nil && own.Dev == asked.Dev && own.Ino == asked.Ino
	})
}

func (c *Capture) readLoop(s *source) {
	for {
		again := false
		err := s.conn.Read(func(fd uintptr) bool {
			n, err := c.readOnce(s, int(fd))
			again = n > 0 || err == unix.EINTR
			// 0 bytes are the end of the last writer, and another may come.
			return err != unix.EAGAIN && (n != 0 || err != nil)
		})
		if err != nil || !again {
			return // closed
		}
	}
}

// readOnce reads once and passes the lines on.
func (c *Capture) readOnce(s *source, fd int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.stopped {
		return 0, os.ErrClosed
	}
	n, err := unix.Read(fd, c.buf)
	if n > 0 {
		at := c.clock()
		s.split.feed(c.buf[:n], func(line []byte) { c.keepLocked(at, "", line) })
	}
	return n, err
}

// drain reads what is there now, and ends a line without an end. What was
// there before the call is no more than the FIFO holds; others may go on
// writing.
func (c *Capture) drain(s *source) {
	for left := 2 * fifoBytes; left > 0; {
		var n int
		var err error
		if s.conn.Control(func(fd uintptr) { n, err = c.readOnce(s, int(fd)) }) != nil {
			break
		}
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			break
		}
		left -= n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.clock()
	s.split.flush(func(line []byte) { c.keepLocked(at, "", line) })
}

func (c *Capture) list() []*source {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sources)
}

// remove stops a source. The FIFO stays locked until its file is closed.
func (c *Capture) remove(s *source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.stopped = true
	c.sources = slices.DeleteFunc(c.sources, func(other *source) bool { return other == s })
}

// Prune lets go of FIFOs that nobody can write to any more, but for the newest
// one.
func (c *Capture) Prune() {
	list := c.list()
	for _, s := range list[:max(0, len(list)-1)] {
		if held(s.conn) {
			continue
		}
		c.drain(s)
		c.remove(s)
		s.file.Close()
	}
}

// Held reports whether some process could still write to a FIFO of the capture.
func (c *Capture) Held() bool {
	return slices.ContainsFunc(c.list(), func(s *source) bool { return held(s.conn) })
}

// Part is a FIFO that a capture has stopped to read.
type Part struct {
	FD   int    // of the FIFO, unlocked; the caller's
	Rest []byte // what it had read of a line whose end has not come
}

// HandOver stops reading without losing a byte and returns what another
// capture has to be given (Add, with a description of its own) to go on. What
// was read is in the file, or dropped, when it returns.
func (c *Capture) HandOver() []Part {
	var parts []Part
	for _, s := range c.list() {
		c.remove(s)
		var fd int
		err := s.conn.Control(func(own uintptr) {
			unix.Flock(int(own), unix.LOCK_UN)
			fd, _ = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 3)
		})
		if err == nil && fd > 0 {
			parts = append(parts, Part{fd, s.split.rest})
		}
		s.file.Close()
	}
	wait(c.queue.settled())
	return parts
}
