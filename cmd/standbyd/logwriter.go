package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/standbyd/standbyd/internal/wording"
)

const (
	logQueue    = 4096            // lines
	logFarewell = 2 * time.Second // for the rest of the queue at the end
)

// logWriter keeps a reader of the log that does not read (a stopped terminal,
// a full pipe) from stopping whoever logs: lines wait in a queue, and when it
// is full they are dropped and counted.
type logWriter struct {
	to      io.Writer
	written chan struct{} // closed when the queue has been written

	mu      sync.Mutex
	queue   chan []byte
	dropped int
	closed  bool
}

func newLogWriter(to io.Writer) *logWriter {
	l := &logWriter{to: to, queue: make(chan []byte, logQueue), written: make(chan struct{})}
	go func() {
		defer close(l.written)
		for line := range l.queue {
			l.to.Write(line) // there is nowhere to report a failure to
		}
	}()
	return l
}

// Write takes one line. It never blocks and never fails.
func (l *logWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(line), nil
	}
	if l.dropped > 0 && len(l.queue) < cap(l.queue)-1 {
		l.queue <- fmt.Appendf(nil, "... %s of the log dropped: nobody read them\n", wording.Count(l.dropped, "line"))
		l.dropped = 0
	}
	select {
	case l.queue <- append([]byte(nil), line...):
	default:
		l.dropped++
	}
	return len(line), nil
}

// Close waits for the queue to be written, but not for long.
func (l *logWriter) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.mu.Unlock()
	select {
	case <-l.written:
	case <-time.After(logFarewell):
	}
	return nil
}
