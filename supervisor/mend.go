package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/internal/listen"
	"github.com/standbyd/standbyd/internal/rolesock"
)

// mend looks for what was removed from the role's folder one by one, and makes
// it again: some calls of stat. A folder that is gone as a whole took the
// segment along, which is noticed by itself.
func (r *roleLoop) mend() {
	dir, err := os.Stat(r.paths.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil && r.whole != nil && os.SameFile(dir, r.whole) && dir.ModTime().Equal(r.whole.ModTime()) {
		r.mind(mindListeners, r.lostListeners()) // theirs may be elsewhere
		return
	}
	r.whole = nil
	var errs []error
	errs = append(errs, r.mendSocket())
	for i, p := range r.posts {
		// Without a reader process, what a worker prints into the old FIFO
		// has us alone to read it: then the next process gets the new one.
		if p.output != nil && (r.reader != nil || p.life == nil) {
			errs = append(errs, r.mendOutput(i))
		}
	}
	if r.seg != nil && missing(r.paths.workers()) {
		errs = append(errs, r.saveWorkers())
	}
	text := ""
	if failed := errors.Join(errs...); failed != nil {
		text = "what was removed from its folder cannot be made again yet: " + failed.Error()
	} else if err == nil && r.reader != nil && time.Since(dir.ModTime()) > settledAfter {
		r.whole = dir
	}
	r.mind(mindFolder, text)
	r.mind(mindListeners, r.lostListeners())
}

// mind warns of something once, and shows it in status until it is over.
func (r *roleLoop) mind(subject, text string) {
	shown := text
	if text != "" {
		shown = "role " + r.config.Name + ": " + text
	}
	if r.sup.keep.Load().note(r.config.Name+" "+subject, shown) && text != "" {
		r.emit(Event{Type: EventWarning, Text: text})
	}
}

const (
	mindFolder    = "folder"
	mindListeners = "listeners"
)

// forget ends what mind shows, with the role.
func (r *roleLoop) forget() {
	r.mind(mindFolder, "")
	r.mind(mindListeners, "")
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// mendSocket listens at the socket's path again if it was removed. What was sent to the old one
// is read first: it is closed only then.
func (r *roleLoop) mendSocket() error {
	if r.socket == nil || !r.socket.Lost() {
		return nil
	}
	uid, gid := r.user.owner()
	socket, err := rolesock.Listen(r.paths.socket(), uid, gid)
	if err != nil {
		return fmt.Errorf("make the socket of role %s again: %w", r.config.Name, err)
	}
	r.socket.Close()
	r.socket = socket
	go r.listenToSocket(socket)
	r.emit(Event{Type: EventWarning, Text: "the socket " + r.paths.socket() + " was removed; it is made again"})
	return nil
}

// mendOutput makes the FIFO of a worker again and has it read. A process that
// has the old one is read on there.
func (r *roleLoop) mendOutput(i int) error {
	fifo := r.paths.fifo(i)
	if !missing(fifo) {
		return nil
	}
	uid, gid := r.user.owner()
	if err := capture.MakeFIFO(fifo, uid, gid); err != nil {
		return err
	}
	p, name := r.posts[i], workerName(r.config.Name, i)
	out, err := r.openOutput(p.output, name, fifo, r.paths.log(name))
	if err != nil {
		os.Remove(fifo) // one that nobody reads would hold its writer up
		return err
	}
	p.output = out
	r.emit(Event{Type: EventWarning, Worker: name, Text: "the FIFO " + fifo + " was removed; it is made again"})
	return nil
}

// lostListeners says which Unix sockets nobody can connect to any more, and
// what to type. They are not bound again beside running workers: those hold
// the old ones.
func (r *roleLoop) lostListeners() string {
	var names []string
	for _, h := range r.listeners {
		if h != nil && h.Lost() {
			names = append(names, fmt.Sprintf("%s, %v", h.Name, h.Addr()))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the path of a socket was removed or replaced, and nobody can connect to it any more (%s): `standbyd stop %s`, then `standbyd start %s` bind it again",
		strings.Join(names, "; "), r.config.Name, r.config.Name)
}

// rebindLost binds such sockets again before the first process of the role
// starts, while nobody holds the old ones.
func (r *roleLoop) rebindLost() {
	for _, p := range r.posts {
		if p.life != nil {
			return
		}
	}
	for i, h := range r.listeners {
		if h == nil || !h.Lost() {
			continue
		}
		c := r.config.Listen[i]
		fresh, err := listen.Bind(c.network(), c.Address, unixSocketMode)
		if err != nil {
			r.emit(Event{Type: EventWarning, Text: fmt.Sprintf("bind listener %s again: %v", c.Name, err)})
			continue
		}
		fresh.Name = h.Name
		h.Close(false)
		r.listeners[i] = fresh
		r.emit(Event{Type: EventWarning, Text: fmt.Sprintf("the socket of listener %s, %v, was removed; it is bound again", c.Name, fresh.Addr())})
	}
	r.mind(mindListeners, r.lostListeners())
}

// upkeepDue tells whether it is time for mend again.
func (r *roleLoop) upkeepDue() bool {
	if time.Since(r.mended) < upkeepEvery || r.st.phase >= phaseClosing {
		return false
	}
	r.mended = time.Now()
	return true
}
