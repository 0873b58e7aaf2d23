//go:build unix

package capture

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	readBytes = 64 << 10
	// idleAfter closes the log file, so that a deleted one frees its space.
	idleAfter = time.Second
	// diskLimit is how long Drain and Close wait for a disk that hangs.
	diskLimit = 2 * time.Second

	tailLines = 100
	tailWidth = 1 << 10 // bytes of a line that Tail keeps

	// clockSlack is how far the clock may fall before the log believes it.
	clockSlack = time.Second
)

// Capture moves lines from FIFOs, usually one, into one log file. All methods
// are safe for concurrent use.
type Capture struct {
	queue   *queue
	log     logFile // of the write loop
	press   *press
	dropped atomic.Uint64
	readers sync.WaitGroup
	written chan struct{} // closed when the write loop has ended
	once    sync.Once
	options atomic.Pointer[Options]
	onLoss  atomic.Pointer[chan struct{}]

	mu      sync.Mutex // over everything that is read, so that lines stay in order
	sources []*source
	closed  bool // takes no more sources
	buf     []byte
	last    time.Time // clock

	tail tail
}

// New makes a capture that reads nothing yet: Add gives it FIFOs. Trouble with
// the log file is no error: lines are dropped and counted until it is over.
func New(log string, o Options) (*Capture, error) {
	o, err := o.check(log)
	if err != nil {
		return nil, err
	}
	c := &Capture{queue: newQueue(), written: make(chan struct{}), buf: make([]byte, readBytes)}
	c.press = newPress(log)
	c.log = logFile{path: log, press: c.press}
	c.options.Store(&o)
	go c.writeLoop()
	return c, nil
}

// Start begins to read fifo, a path made by MakeFIFO.
func Start(fifo, log string, o Options) (*Capture, error) {
	f, err := openReader(fifo)
	if err != nil {
		return nil, err
	}
	c, err := New(log, o)
	if err != nil {
		f.Close()
		return nil, err
	}
	if err := c.Add(f, nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// SetOptions changes how the log is kept, from the next line on.
func (c *Capture) SetOptions(o Options) error {
	o, err := o.check(c.log.path)
	if err == nil {
		c.options.Store(&o)
	}
	return err
}

// clock is the time of what is read now. It never falls, so that a clock that
// is set back does not put lines out of order; for c.mu.
func (c *Capture) clock() stamp {
	if now := time.Now(); now.Round(0).After(c.last) || c.last.Sub(now.Round(0)) > clockSlack {
		c.last = now.Round(0)
	}
	return stampOf(c.last)
}

func (c *Capture) keepLocked(at stamp, prefix string, line []byte) {
	c.tail.add(prefix, line)
	if !c.queue.add(at, prefix, line) {
		c.lose(1)
	}
}

// OnLoss makes ch, which should have room for one, be told when Dropped rises.
func (c *Capture) OnLoss(ch chan struct{}) { c.onLoss.Store(&ch) }

func (c *Capture) lose(n uint64) {
	c.dropped.Add(n)
	if ch := c.onLoss.Load(); ch != nil && n > 0 {
		poke(*ch)
	}
}

// writeLoop is the only one that touches the disk.
func (c *Capture) writeLoop() {
	defer close(c.written)
	defer c.log.close()
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	c.log.options = *c.options.Load()
	c.press.look(c.log.options) // what an earlier capture left
	var spare []byte
	var untold uint64 // lost lines that the file does not tell of yet
	var why error
	for {
		select {
		case <-c.queue.wake:
		case <-idle.C:
			c.log.close()
			c.queue.shrink()
			spare = nil
			continue
		}
		c.log.options = *c.options.Load()
		b := c.queue.take(spare)
		if untold > 0 && len(b.text) > 0 {
			if _, err := c.log.write(lossNote(untold, why)); err == nil {
				untold, why = 0, nil
			}
		}
		lost, err := c.log.write(b.text)
		c.lose(lost)
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
	return appendLine(nil, stampOf(time.Now()), notePrefix, fmt.Appendf(nil, "%d lines dropped: %v", n, why))
}

// Drain returns when everything that was written to the FIFO before the call
// is in the file, a last line without an end too: the last words of a worker
// that has ended. A disk that hangs is waited for 2 s.
func (c *Capture) Drain() {
	for _, s := range c.list() {
		c.drain(s)
	}
	wait(c.queue.settled())
}

// LastWords is Drain, and returns the last n lines since the LastWords before:
// what one life of a worker said at its end. At most 100, as for Tail.
func (c *Capture) LastWords(n int) []string {
	for _, s := range c.list() {
		c.drain(s)
	}
	words := c.tail.sinceMark(n)
	wait(c.queue.settled())
	return words
}

func wait(ch <-chan struct{}) { waitFor(ch, diskLimit) }

func waitFor(ch <-chan struct{}, limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-ch:
	case <-late.C:
	}
}

// Note adds a line of the supervisor's own, marked "standbyd: ".
func (c *Capture) Note(line string) {
	line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\n", " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLocked(c.clock(), notePrefix, []byte(line))
}

// Dropped counts the lines that are not in the file.
func (c *Capture) Dropped() uint64 { return c.dropped.Load() }

// Tail is the last n lines, oldest first, without their time, cut to 1 KiB; at
// most 100 are kept. They come from memory, whatever the disk does.
func (c *Capture) Tail(n int) []string { return c.tail.last(n) }

// Close drains, ends the capture and leaves FIFO and file where they are: what
// is written from now on waits in the FIFO for the next Start. A second Close
// does nothing.
func (c *Capture) Close() error { return c.CloseWithin(diskLimit) }

// CloseWithin is Close with a limit of its own for a disk that hangs; what is
// not written then is lost.
func (c *Capture) CloseWithin(limit time.Duration) error {
	var err error
	c.once.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		for _, s := range c.list() {
			c.drain(s)
			c.remove(s)
			if cerr := s.file.Close(); err == nil {
				err = cerr
			}
		}
		c.readers.Wait()
		c.queue.close()
		waitFor(c.written, limit)
		c.press.close()
	})
	return err
}

// tail is a ring of the last lines.
type tail struct {
	mu    sync.Mutex
	lines [tailLines][]byte
	next  int
	full  bool
	fresh int // lines since the mark
}

func (t *tail) add(prefix string, line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := append(t.lines[t.next][:0], prefix...)
	t.lines[t.next] = append(b, line[:min(len(line), tailWidth)]...)
	t.fresh++
	if t.next++; t.next == tailLines {
		t.next, t.full = 0, true
	}
}

func (t *tail) last(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lastLocked(n)
}

// sinceMark is last without what was there at the sinceMark before.
func (t *tail) sinceMark(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lastLocked(min(n, t.fresh))
	t.fresh = 0
	return lines
}

func (t *tail) lastLocked(n int) []string {
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
