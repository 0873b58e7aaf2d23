//go:build unix

package capture

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	readBytes = 64 << 10
	// idleAfter closes the log file, so that a deleted one frees its space.
	idleAfter = time.Second
	// diskLimit is how long Drain and Close wait for a disk that hangs.
	diskLimit = 2 * time.Second

	tailLines = 100
	tailWidth = 1 << 10 // bytes of a line that Tail keeps
)

// Capture moves lines from one FIFO into one log file. All methods are safe for
// concurrent use.
type Capture struct {
	fifo    *os.File
	conn    syscall.RawConn
	queue   *queue
	log     logFile // of the write loop
	dropped atomic.Uint64
	readers sync.WaitGroup
	written chan struct{} // closed when the write loop has ended
	once    sync.Once

	mu    sync.Mutex // over everything that is read, so that lines stay in order
	buf   []byte
	split splitter

	tail tail
}

// Start begins to read fifo, a path made by MakeFIFO. Trouble with the log
// file is no error: lines are dropped and counted until it is over.
func Start(fifo, log string, o Options) (*Capture, error) {
	if o.MaxBytes < 0 || o.Keep < 0 {
		return nil, fmt.Errorf("capture %s: negative size or count", fifo)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	f, err := openReader(fifo)
	if err != nil {
		return nil, err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("capture %s: %w", fifo, err)
	}
	c := &Capture{
		fifo: f, conn: conn, queue: newQueue(), written: make(chan struct{}),
		log: logFile{path: log, max: o.MaxBytes, keep: o.Keep},
		buf: make([]byte, readBytes),
	}
	c.readers.Go(c.readLoop)
	go c.writeLoop()
	return c, nil
}

func (c *Capture) readLoop() {
	for {
		again := false
		err := c.conn.Read(func(fd uintptr) bool {
			n, err := c.readOnce(int(fd))
			again = n > 0 || err == unix.EINTR
			return err != unix.EAGAIN
		})
		if err != nil || !again {
			return // closed
		}
	}
}

// readOnce reads once and passes the lines on.
func (c *Capture) readOnce(fd int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := unix.Read(fd, c.buf)
	if n > 0 {
		now := time.Now()
		c.split.feed(c.buf[:n], func(line []byte) { c.keepLocked(now, "", line) })
	}
	return n, err
}

func (c *Capture) keepLocked(at time.Time, prefix string, line []byte) {
	c.tail.add(prefix, line)
	if !c.queue.add(at, prefix, line) {
		c.dropped.Add(1)
	}
}

// writeLoop is the only one that touches the disk.
func (c *Capture) writeLoop() {
	defer close(c.written)
	defer c.log.close()
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	var spare []byte
	var untold uint64 // lost lines that the file does not tell of yet
	var why error
	for {
		select {
		case <-c.queue.wake:
		case <-idle.C:
			c.log.close()
			spare = nil
			continue
		}
		b := c.queue.take(spare)
		if untold > 0 && len(b.text) > 0 {
			if _, err := c.log.write(lossNote(untold, why)); err == nil {
				untold, why = 0, nil
			}
		}
		lost, err := c.log.write(b.text)
		c.dropped.Add(lost)
		untold += lost
		if err != nil {
			why = err
		}
		if b.lost > 0 {
			untold += b.lost
			if why == nil {
				why = errSlow
			}
		}
		if b.last && untold > 0 {
			c.log.write(lossNote(untold, why))
		}
		c.queue.finished(b)
		if b.last {
			return
		}
		spare = b.text
		idle.Reset(idleAfter)
	}
}

type slowError struct{}

func (slowError) Error() string { return "the disk was too slow" }

var errSlow error = slowError{}

func lossNote(n uint64, why error) []byte {
	return appendLine(nil, time.Now(), notePrefix, fmt.Appendf(nil, "%d lines dropped: %v", n, why))
}

// Drain returns when everything that was written to the FIFO before the call
// is in the file, a last line without an end too: the last words of a worker
// that has ended. A disk that hangs is waited for 2 s.
func (c *Capture) Drain() {
	// What was there before the call is no more than the FIFO holds; others
	// may go on writing.
	for left := 2 * fifoBytes; left > 0; {
		var n int
		var err error
		if c.conn.Control(func(fd uintptr) { n, err = c.readOnce(int(fd)) }) != nil {
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
	now := time.Now()
	c.split.flush(func(line []byte) { c.keepLocked(now, "", line) })
	c.mu.Unlock()
	wait(c.queue.settled())
}

func wait(ch <-chan struct{}) {
	limit := time.NewTimer(diskLimit)
	defer limit.Stop()
	select {
	case <-ch:
	case <-limit.C:
	}
}

// Note adds a line of the supervisor's own, marked "standbyd: ".
func (c *Capture) Note(line string) {
	line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\n", " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLocked(time.Now(), notePrefix, []byte(line))
}

// Dropped counts the lines that are not in the file.
func (c *Capture) Dropped() uint64 { return c.dropped.Load() }

// Tail is the last n lines, oldest first, without their time, cut to 1 KiB; at
// most 100 are kept. They come from memory, whatever the disk does.
func (c *Capture) Tail(n int) []string { return c.tail.last(n) }

// Close drains, ends the capture and leaves FIFO and file where they are: what
// is written from now on waits in the FIFO for the next Start. A second Close
// does nothing.
func (c *Capture) Close() error {
	var err error
	c.once.Do(func() {
		c.Drain()
		err = c.fifo.Close()
		c.readers.Wait()
		c.queue.close()
		wait(c.written)
	})
	return err
}

// tail is a ring of the last lines.
type tail struct {
	mu    sync.Mutex
	lines [tailLines][]byte
	next  int
	full  bool
}

func (t *tail) add(prefix string, line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := append(t.lines[t.next][:0], prefix...)
	t.lines[t.next] = append(b, line[:min(len(line), tailWidth)]...)
	if t.next++; t.next == tailLines {
		t.next, t.full = 0, true
	}
}

func (t *tail) last(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	have := t.next
	if t.full {
		have = tailLines
	}
	n = max(0, min(n, have))
	out := make([]string, 0, n)
	for i := t.next - n; i < t.next; i++ {
		out = append(out, string(t.lines[(i+tailLines)%tailLines]))
	}
	return out
}
