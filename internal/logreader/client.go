//go:build linux

package logreader

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/launch"
)

const (
	// lookEvery is how often it is seen whether something waits unread; then
	// the reader has to answer within answerLimit, or is replaced.
	lookEvery   = time.Second
	answerLimit = 3 * time.Second

	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second

	outbox = 1024 // messages that wait for the reader
)

var (
	errOver = errors.New("the log reader was let go")
	errGone = errors.New("the log reader is gone")
)

// Reader is the reader of one role as its supervisor sees it: found or
// started, watched, replaced. Its methods are safe for concurrent use.
type Reader struct {
	role, dir string
	warn      func(string)

	out  chan *question
	poke chan struct{} // something is dirty
	quit chan struct{} // closed by End and Leave
	done chan struct{} // closed when run has returned
	once sync.Once

	mu      sync.Mutex
	fds     []unix.PollFd // of the last look, kept for its room
	logs    map[string]*Log
	status  Status
	bind    bool // listen again
	ending  bool
	started bool
}

// Status is what can be shown of a reader.
type Status struct {
	PID      int    `json:"pid"` // 0: there is none right now
	Restarts int    `json:"restarts"`
	Error    string `json:"last_error,omitempty"` // why there is none
}

type question struct {
	message
	answer chan *message // nil: none is wanted; closed without one when the reader is gone
}

// Supported: this program can have readers, see Stage.
func Supported() bool { return launch.CanStage() }

// New makes the reader of a role with the folder dir. warn gets what went
// wrong, from any goroutine. Nothing happens before Start.
func New(role, dir string, warn func(string)) *Reader {
	return &Reader{role: role, dir: dir, warn: warn, out: make(chan *question, outbox), poke: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}), logs: map[string]*Log{}}
}

// Start finds a reader that is at work, or starts one, and keeps one at work
// until End or Leave. It does not wait for it.
func (r *Reader) Start() {
	r.mu.Lock()
	r.started = true
	r.mu.Unlock()
	go r.run()
}

// Renew is for a folder that was made anew: the reader listens there again.
func (r *Reader) Renew() {
	r.mu.Lock()
	r.bind = true
	r.mu.Unlock()
	poke(r.poke)
}

// Status is of this moment.
func (r *Reader) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// End makes the reader finish every log and end, and returns when it has. If
// its disk hangs, we leave after 10 s, and it after half a minute.
func (r *Reader) End() {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	r.mu.Lock()
	r.ending = true
	at := r.status.PID
	r.mu.Unlock()
	if at != 0 {
		r.ask(ctx, &message{Op: opEnd})
	}
	r.leave()
}

// Leave lets go of the reader, which goes on until the next supervisor comes,
// or ends by itself.
func (r *Reader) Leave() { r.leave() }

func (r *Reader) leave() {
	r.once.Do(func() {
		close(r.quit)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.started {
			r.mu.Unlock()
			<-r.done
			r.mu.Lock()
		}
		for _, l := range r.logs {
			l.dropFeedsLocked()
		}
	})
}

// ask sends a question and waits for the answer.
func (r *Reader) ask(ctx context.Context, m *message) (*message, error) {
	q := &question{message: *m, answer: make(chan *message, 1)}
	select {
	case r.out <- q:
	case <-r.done:
		return nil, errOver
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case reply, ok := <-q.answer:
		if !ok {
			return nil, errGone
		}
		if reply.Error != "" {
			return reply, errors.New(reply.Error)
		}
		return reply, nil
	case <-r.done:
		return nil, errOver
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *Reader) run() {
	defer close(r.done)
	pause := time.Duration(0)
	for first := true; ; {
		select {
		case <-r.quit:
			return
		case <-time.After(pause):
		}
		began := time.Now()
		k, err := r.connect(first)
		if err == nil {
			first = false
			r.show(k.id.PID, nil)
			err = r.use(k)
		}
		select {
		case <-r.quit:
			return
		default:
		}
		if r.isEnding() {
			return
		}
		r.show(0, err)
		r.warn(fmt.Sprintf("the log reader of role %s: %v; another one is started", r.role, err))
		switch {
		case time.Since(began) > lastPause:
			pause = 0
		case pause == 0:
			pause = firstPause
		default:
			pause = min(2*pause, lastPause)
		}
	}
}

func (r *Reader) isEnding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending
}

func (r *Reader) show(pid int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.PID = pid
	if err != nil {
		r.status.Error = err.Error()
		r.status.Restarts++
		return
	}
	r.status.Error = ""
}

// use works with a reader until it is gone (the error says why) or r is quit.
func (r *Reader) use(k *link) error {
	r.mu.Lock()
	r.bind = true
	for name, l := range r.logs {
		l.dirty = true
		l.current.Store(k.dropped[name])
		for _, f := range l.feeds {
			f.sent = false
		}
	}
	r.mu.Unlock()
	gone := make(chan error, 1)
	go k.receive(r, gone)
	defer r.settle()
	look := time.NewTimer(untilLook())
	defer look.Stop()
	unanswered := 0 // looks since a ping
	for {
		if err := r.introduce(k); err != nil {
			k.kill()
			return err
		}
		select {
		case <-r.quit:
			ending := r.isEnding()
			if ending && !k.ended.Load() {
				k.c.send(&message{Op: opEnd})
			}
			k.letGo(ending)
			return nil
		case err := <-gone:
			k.letGo(r.isEnding())
			return err
		case <-r.poke:
		case q := <-r.out:
			if err := k.post(q); err != nil {
				k.kill()
				return err
			}
		case <-look.C:
			// Looks are counted, not time: when we were stopped ourselves, its
			// answer is still to be read.
			look.Reset(untilLook())
			waiting := r.look()
			switch {
			case k.answered.Swap(false):
				unanswered = 0
			case unanswered > 0:
				unanswered++
			}
			if unanswered > int(answerLimit/lookEvery) {
				k.kill()
				return fmt.Errorf("%v does not read, and was killed", k.id)
			}
			if unanswered == 0 && waiting {
				unanswered = 1
				if err := k.post(&question{message: message{Op: opPing}}); err != nil {
					k.kill()
					return err
				}
			}
		}
	}
}

// settle keeps the count of lines that the reader that is gone has lost.
func (r *Reader) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.logs {
		l.before.Add(l.current.Swap(0))
	}
}

// untilLook is how long it is until the next multiple of lookEvery since the
// program began: the readers of a hundred roles wake it once that way.
func untilLook() time.Duration { return lookEvery - time.Since(beginning)%lookEvery }

var beginning = time.Now()

// look reports whether something waits unread, and lets go of what nobody
// needs.
func (r *Reader) look() (waiting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fds = r.fds[:0]
	for _, l := range r.logs {
		l.pruneLocked()
		for _, f := range l.feeds {
			r.fds = append(r.fds, unix.PollFd{Fd: int32(f.fd), Events: unix.POLLIN})
		}
	}
	if n, err := unix.Poll(r.fds, 0); err != nil || n == 0 {
		return false
	}
	for _, f := range r.fds {
		waiting = waiting || f.Revents&unix.POLLIN != 0 // without it: nobody has it open to write
	}
	return waiting
}

// introduce tells the reader what it does not know yet.
func (r *Reader) introduce(k *link) error {
	r.mu.Lock()
	var news []*message
	if r.bind {
		r.bind = false
		news = append(news, &message{Op: opBind, File: filepath.Join(r.dir, socketName)})
		if err := writeRecord(r.dir, k.id); err != nil {
			go r.warn(err.Error())
		}
	}
	for _, l := range r.logs {
		if !l.dirty {
			continue
		}
		l.dirty = false
		o := l.options
		m := &message{Op: opTrack, Name: l.name, File: l.file, Options: &o}
		for _, f := range l.feeds {
			if !f.sent {
				m.files = append(m.files, f.fd)
				m.Parts = append(m.Parts, part{Name: l.name, Rest: f.rest})
				f.sent, f.rest = true, nil
			}
		}
		news = append(news, m)
	}
	defer r.mu.Unlock() // the files must not be closed meanwhile
	for _, m := range news {
		if err := k.post(&question{message: *m}); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) count(dropped map[string]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, n := range dropped {
		if l := r.logs[name]; l != nil {
			l.current.Store(n)
		}
	}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
