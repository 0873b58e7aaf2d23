//go:build linux

package logreader

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/proc"
)

const (
	helloLimit = 5 * time.Second
	handLimit  = 10 * time.Second
)

// link is a reader process and the connection to it.
type link struct {
	c        *conn
	id       proc.Identity
	process  *launch.Process
	protocol int
	program  string
	dropped  map[string]uint64 // when the link was made
	answered atomic.Bool       // a ping, since this was asked last
	ended    atomic.Bool       // it has said that every log is finished

	mu      sync.Mutex
	lastID  uint64
	pending map[uint64]chan *message
	broken  bool
}

// connect makes a link to the reader of the folder: to the one that is there,
// or to a new one. Never are two left.
func (r *Reader) connect(first bool) (*link, error) {
	old := r.reach()
	if old != nil && old.program == program() {
		if first {
			r.endOthers(old.id)
		}
		return old, nil
	}
	var spare proc.Identity
	if old != nil {
		spare = old.id
	}
	r.endOthers(spare)
	k, err := r.launch()
	if err != nil {
		if old != nil && old.protocol == protocol {
			r.warn(fmt.Sprintf("the log reader of role %s is of another version and goes on: %v", r.role, err))
			return old, nil
		}
		if old != nil {
			old.letGo(false)
		}
		return nil, err
	}
	if old != nil {
		r.takeFrom(old)
	}
	return k, nil
}

func (r *Reader) endOthers(but proc.Identity) {
	for _, id := range others(r.dir, but) {
		if err := endReader(id); err != nil {
			r.warn(err.Error())
		}
	}
}

// reach connects to the reader that listens in the folder; nil if there is
// none that can be used.
func (r *Reader) reach() *link {
	u, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(r.dir, socketName), Net: "unix"})
	if err != nil {
		return nil
	}
	pid, err := peer(u)
	var id proc.Identity
	if err == nil {
		id, err = proc.Of(pid)
	}
	var p *launch.Process
	if err == nil {
		p, err = launch.Adopt(id)
	}
	if err != nil {
		u.Close()
		return nil
	}
	k := &link{c: newConn(u), id: id, process: p, pending: map[uint64]chan *message{}}
	if k.hello() != nil {
		k.letGo(false)
		return nil
	}
	return k
}

// launch starts a reader. It is on record before it runs.
func (r *Reader) launch() (*link, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "supervisor")
	defer theirs.Close()
	u, err := unixConn(pair[0])
	if err != nil {
		return nil, err
	}
	p, err := launch.Start(launch.Spec{
		Path: "/proc/self/exe", Args: []string{name, r.role}, Dir: "/", Umask: 0o077,
		Env:       append(looksInside(), "GOMAXPROCS=2", mark+"="+r.dir),
		Listeners: []*os.File{theirs}, ListenNames: []string{"supervisor"}, Staged: true,
	})
	if err != nil {
		u.Close()
		return nil, err
	}
	k := &link{c: newConn(u), id: p.Identity(), process: p, pending: map[uint64]chan *message{}}
	if err = writeRecord(r.dir, k.id); err == nil {
		if err = p.Release(); err == nil {
			err = k.hello()
		}
	}
	if err != nil {
		k.kill()
		return nil, err
	}
	return k, nil
}

// looksInside are the variables with which a Go programmer looks into this
// process: they are meant for the reader, which is the same program, too.
func looksInside() (env []string) {
	for _, key := range []string{"GODEBUG", "GORACE", "GOTRACEBACK"} {
		if v, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+v)
		}
	}
	return env
}

func (k *link) hello() error {
	reply, err := k.exchange(&message{Op: opHello}, helloLimit)
	if err != nil {
		return err
	}
	reply.closeFiles()
	k.protocol, k.program, k.dropped = reply.Protocol, reply.Program, reply.Dropped
	return nil
}

// exchange is a question before anybody else receives.
func (k *link) exchange(m *message, limit time.Duration) (*message, error) {
	k.lastID++
	m.ID = k.lastID
	if err := k.c.send(m); err != nil {
		return nil, err
	}
	k.c.net.SetReadDeadline(time.Now().Add(limit))
	defer k.c.net.SetReadDeadline(time.Time{})
	for {
		reply, err := k.c.receive()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, fmt.Errorf("%v did not answer within %v", k.id, limit)
			}
			return nil, fmt.Errorf("%v does not answer: %w", k.id, err)
		}
		if reply.ID == m.ID {
			if reply.Error != "" {
				reply.closeFiles()
				return nil, errors.New(reply.Error)
			}
			return reply, nil
		}
		reply.closeFiles()
	}
}

// takeFrom gets the FIFOs from a reader of another version, with the beginnings
// of lines, and ends it.
func (r *Reader) takeFrom(old *link) {
	reply, err := old.exchange(&message{Op: opHandOver}, handLimit)
	if err == nil && len(reply.files) != len(reply.Parts) {
		reply.closeFiles()
		err = errFrame
	}
	if err != nil {
		r.warn(fmt.Sprintf("the earlier log reader of role %s does not hand over, and is ended: %v", r.role, err))
		old.letGo(false)
		if err := endReader(old.id); err != nil {
			r.warn(err.Error())
		}
		return
	}
	for i, p := range reply.Parts {
		r.mu.Lock()
		l := r.logs[p.Name]
		r.mu.Unlock()
		if l == nil || !l.add(reply.files[i], p.Rest) {
			unix.Close(reply.files[i])
		}
	}
	r.mu.Lock()
	for name, n := range reply.Dropped {
		if l := r.logs[name]; l != nil {
			l.before.Add(n)
		}
	}
	r.mu.Unlock()
	// What it has read it writes by itself, however long its disk takes.
	old.c.send(&message{Op: opEnd})
	old.letGo(false)
}

// post sends a question, or a message that wants no answer.
func (k *link) post(q *question) error {
	m := q.message
	k.mu.Lock()
	if k.broken {
		k.mu.Unlock()
		if q.answer != nil {
			close(q.answer)
		}
		return errGone
	}
	k.lastID++
	m.ID = k.lastID
	if q.answer != nil {
		k.pending[m.ID] = q.answer
	}
	k.mu.Unlock()
	return k.c.send(&m)
}

// receive distributes what the reader says, until the connection ends.
func (k *link) receive(r *Reader, gone chan<- error) {
	for {
		m, err := k.c.receive()
		if err != nil {
			k.mu.Lock()
			k.broken = true
			for _, ch := range k.pending {
				close(ch)
			}
			k.pending = nil
			k.mu.Unlock()
			gone <- fmt.Errorf("%v ended", k.id)
			return
		}
		m.closeFiles()
		switch m.Op {
		case opPing:
			k.answered.Store(true)
			continue
		case opLost:
			r.count(m.Dropped)
			continue
		case opTrouble:
			r.warn(fmt.Sprintf("the log reader of role %s: %s: %s", r.role, m.Name, m.Error))
			continue
		case opWords, opTail:
			r.count(m.Dropped)
		}
		if m.Op == opEnd {
			k.ended.Store(true)
		}
		k.mu.Lock()
		ch := k.pending[m.ID]
		delete(k.pending, m.ID)
		k.mu.Unlock()
		if ch != nil {
			ch <- m
		} else if m.Error != "" {
			r.warn(fmt.Sprintf("the log reader of role %s: %s: %s", r.role, m.Op, m.Error))
		}
	}
}

// kill ends a reader that cannot be used.
func (k *link) kill() {
	k.process.Signal(syscall.SIGKILL)
	k.letGo(true)
}

// letGo closes the connection. The process is waited for if it is ending, but
// not for ever; else it lives on. It is reaped in any case.
func (k *link) letGo(ending bool) {
	// Not before: one that cannot send an answer reads no further, and would
	// not hear that it has to end.
	defer k.c.close()
	reap := func() {
		<-k.process.Done()
		k.process.Reap()
		k.process.Close()
	}
	wait := time.Duration(0)
	if ending {
		wait = endWait
	}
	select {
	case <-k.process.Done():
		reap()
	case <-time.After(wait):
		go reap()
	}
}
