//go:build linux

package logreader

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/capture"
)

// Stage makes this program able to be a reader. It must be called first in
// main: if the process is one, it serves and does not return; else Stage
// returns at once.
func Stage() {
	if len(os.Args) == 2 && os.Args[0] == name {
		os.Exit(serve())
	}
}

const (
	startFD = 3 // the connection to the supervisor that started it
	// lockWait is how long a reader waits for another one to let go of a FIFO.
	lockWait = 10 * time.Second
	soon     = 500 * time.Millisecond
	// finishLimit is how long a reader that ends waits for its disk.
	finishLimit = 30 * time.Second
	// tellEvery is the shortest time between two messages about lost lines.
	tellEvery = 200 * time.Millisecond
	// keepHouse is how often FIFOs without writers are looked for; lonely the
	// same without a supervisor.
	keepHouse = 5 * time.Second
	lonely    = 500 * time.Millisecond
)

// server is the reader's side of the whole.
type server struct {
	program string
	over    chan struct{} // closed when it has to end, and every log is finished
	once    sync.Once
	lost    chan struct{} // lines were lost somewhere

	mu       sync.Mutex
	logs     map[string]*capture.Capture
	conns    map[*conn]bool
	seen     time.Time // when the last supervisor left
	listener *net.UnixListener
}

func serve() int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
	hurry := make(chan os.Signal, 1)
	signal.Notify(hurry, syscall.SIGTERM)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGUSR1)
	os.WriteFile("/proc/self/comm", []byte(name), 0) // else ps shows "exe"
	s := &server{program: program(), over: make(chan struct{}), lost: make(chan struct{}, 1),
		logs: map[string]*capture.Capture{}, conns: map[*conn]bool{}, seen: time.Now()}
	first, err := unixConn(startFD)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s is started by standbyd alone: %v\n", name, err)
		return 2
	}
	s.welcome(first)
	go s.tell()
	linger := Linger
	for {
		s.mu.Lock()
		wait := keepHouse
		if len(s.conns) == 0 {
			wait = min(lonely, linger+time.Millisecond)
		}
		s.mu.Unlock()
		select {
		case <-s.over:
			return 0
		case <-end:
			s.finish()
			return 0
		case <-hurry:
			linger = 0
		case <-time.After(wait):
		}
		if s.forsaken(linger) {
			s.finish()
			return 0
		}
	}
}

func unixConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "supervisor")
	if f == nil {
		return nil, os.ErrInvalid
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("not a unix socket")
	}
	return u, nil
}

func (s *server) list() map[string]*capture.Capture {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs := make(map[string]*capture.Capture, len(s.logs))
	for name, c := range s.logs {
		logs[name] = c
	}
	return logs
}

// forsaken: nobody needs this reader any more.
func (s *server) forsaken(linger time.Duration) bool {
	s.mu.Lock()
	alone := len(s.conns) == 0 && time.Since(s.seen) >= linger
	s.mu.Unlock()
	held := false
	for _, c := range s.list() {
		c.Prune()
		held = held || alone && c.Held()
	}
	return alone && !held
}

// finish writes everything to disk and closes the logs.
func (s *server) finish() {
	s.mu.Lock()
	if s.listener != nil {
		s.listener.Close()
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range s.list() {
		all.Go(func() { c.CloseWithin(finishLimit) })
	}
	all.Wait()
}

func (s *server) welcome(u *net.UnixConn) {
	c := newConn(u)
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	go s.listenTo(c)
}

func (s *server) listenTo(c *conn) {
	handed := map[string][]capture.Part{}
	defer func() {
		c.close()
		s.takeBack(handed)
		s.mu.Lock()
		delete(s.conns, c)
		s.seen = time.Now()
		s.mu.Unlock()
	}()
	for {
		m, err := c.receive()
		if err != nil {
			return
		}
		switch m.Op {
		case opHandOver:
			err = s.handOver(c, m, handed)
		case opEnd:
			clear(handed) // somebody has it; our descriptors end with us
			fallthrough
		default:
			err = s.answer(c, m)
		}
		m.closeFiles()
		if err != nil {
			return
		}
	}
}

// answer does what a message wants. An error ends the connection.
func (s *server) answer(c *conn, m *message) error {
	reply := &message{ID: m.ID, Op: m.Op}
	switch m.Op {
	case opHello:
		reply.Protocol, reply.Program, reply.Dropped = protocol, s.program, s.dropped()
	case opPing:
	case opBind:
		if err := s.bind(m.File); err != nil {
			reply.Error = err.Error()
		}
	case opTrack:
		if err := s.track(c, m); err != nil {
			reply.Error = err.Error()
		}
	case opNote:
		if log := s.log(m.Name); log != nil {
			log.Note(m.Line)
		}
		return nil
	case opWords, opTail, opUntrack:
		log := s.log(m.Name)
		if log == nil {
			reply.Error = "no log " + m.Name
			break
		}
		// A disk that hangs holds up who asked, and nobody else.
		go func() {
			switch m.Op {
			case opWords:
				reply.Lines = log.LastWords(m.N)
			case opTail:
				reply.Lines = log.Tail(m.N)
			case opUntrack:
				s.untrack(m.Name, log)
			}
			reply.Dropped = map[string]uint64{m.Name: log.Dropped()}
			c.send(reply)
		}()
		return nil
	case opEnd:
		s.finish()
		reply.Dropped = s.dropped()
		err := c.send(reply)
		s.once.Do(func() { close(s.over) })
		return err
	default:
		reply.Error = "unknown operation " + strconv.Quote(m.Op)
	}
	return c.send(reply)
}

func (s *server) log(name string) *capture.Capture {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[name]
}

func (s *server) track(c *conn, m *message) error {
	if m.Options == nil || len(m.Parts) != len(m.files) {
		return errFrame
	}
	s.mu.Lock()
	log := s.logs[m.Name]
	var err error
	if log != nil {
		err = log.SetOptions(*m.Options)
	} else if log, err = capture.New(m.File, *m.Options); err == nil {
		log.OnLoss(s.lost)
		s.logs[m.Name] = log
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for i, fd := range m.files {
		f, err := own(fd)
		if err != nil {
			return err
		}
		// The next supervisor passes on what this reader has from the one before.
		if log.Reads(f) {
			unix.Close(f)
			continue
		}
		// What is asked next is about what is read now. A FIFO that another one
		// has does not hold that up for long.
		if lock(f, soon) {
			if err := log.Add(os.NewFile(uintptr(f), "FIFO"), m.Parts[i].Rest); err != nil {
				return err
			}
			continue
		}
		go func() {
			if err := read(log, f, m.Parts[i].Rest); err != nil {
				c.send(&message{Op: opTrouble, Name: m.Name, Error: err.Error()})
			}
		}()
	}
	return nil
}

// own opens a FIFO that was passed on once more: the lock needs a description
// that nobody else has.
func own(fd int) (int, error) {
	f, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a FIFO that was passed on: %w", err)
	}
	return f, nil
}

// read gives a FIFO to the log as soon as no other reader has it.
func read(log *capture.Capture, fd int, rest []byte) error {
	lock(fd, lockWait)
	return log.Add(os.NewFile(uintptr(fd), "FIFO"), rest)
}

// lock waits until no other reader has the FIFO.
func lock(fd int, limit time.Duration) bool {
	for end := time.Now().Add(limit); unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (s *server) untrack(name string, log *capture.Capture) {
	s.mu.Lock()
	if s.logs[name] == log {
		delete(s.logs, name)
	}
	s.mu.Unlock()
	log.Close()
}

// handOver stops reading and gives everything away. If the connection ends
// before it is told to end, nobody has it: takeBack.
func (s *server) handOver(c *conn, m *message, handed map[string][]capture.Part) error {
	reply := &message{ID: m.ID, Op: m.Op, Dropped: s.dropped()}
	for name, log := range s.list() {
		for _, p := range log.HandOver() {
			handed[name] = append(handed[name], p)
			reply.Parts = append(reply.Parts, part{Name: name, Rest: p.Rest})
			reply.files = append(reply.files, p.FD)
		}
	}
	return c.send(reply)
}

func (s *server) takeBack(handed map[string][]capture.Part) {
	for name, parts := range handed {
		log := s.log(name)
		for _, p := range parts {
			if fd, err := own(p.FD); err == nil && log != nil && read(log, fd, p.Rest) == nil {
				log.Note("the next reader did not take over: this one goes on")
			}
			unix.Close(p.FD)
		}
	}
}

// bind listens for the next supervisor at path, unless it does already.
func (s *server) bind(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("listen at %s: %w", path, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen for the next supervisor: %w", err)
	}
	l.SetUnlinkOnClose(false) // it may be a successor's by then
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return fmt.Errorf("listen at %s: %w", path, err)
	}
	s.listener = l
	go func() {
		for {
			u, err := l.AcceptUnix()
			if err != nil {
				return
			}
			if _, err := peer(u); err != nil {
				u.Close()
				continue
			}
			s.welcome(u)
		}
	}()
	return nil
}

func (s *server) dropped() map[string]uint64 {
	lost := map[string]uint64{}
	for name, c := range s.list() {
		lost[name] = c.Dropped()
	}
	return lost
}

// tell keeps every supervisor informed about lost lines.
func (s *server) tell() {
	for range s.lost {
		m := &message{Op: opLost, Dropped: s.dropped()}
		s.mu.Lock()
		var to []*conn
		for c := range s.conns {
			to = append(to, c)
		}
		s.mu.Unlock()
		for _, c := range to {
			c.send(m)
		}
		time.Sleep(tellEvery)
	}
}
