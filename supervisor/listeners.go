package supervisor

import (
	"fmt"
	"os"
	"strings"

	"github.com/standbyd/standbyd/internal/listen"
)

// unixSocketMode lets everybody connect who may pass through the folder.
const unixSocketMode = 0o666

// bindSockets binds the listeners that are not held.
func (r *roleLoop) bindSockets() error {
	for i, c := range r.config.Listen {
		if r.listeners[i] != nil {
			continue
		}
		h, err := r.bindSocket(i, c)
		if err != nil {
			return err
		}
		r.listeners[i] = h
	}
	return nil
}

// bindSocket binds the listener that stands at place i of the config, unless a
// socket for it was lent to us.
func (r *roleLoop) bindSocket(i int, c ListenConfig) (*listen.Held, error) {
	if h := r.sup.lent.take(r.config.Name, c); h != nil {
		if !h.Fits(c.network(), c.Address) {
			r.emit(Event{Type: EventWarning, Text: fmt.Sprintf("listener %s is on %s %v, as the socket that was passed to standbyd under its name, and not on %s",
				c.Name, h.Network(), h.Addr(), c.Address)})
		}
		return h, nil
	}
	h, err := listen.Bind(c.network(), c.Address, unixSocketMode)
	if err != nil {
		return nil, &ConfigError{Role: r.config.Name, Field: fmt.Sprintf("listen[%d].address", i),
			Msg: fmt.Sprintf("%q (%s)", c.Address, c.Name), Err: err}
	}
	h.Name = c.Name
	return h, nil
}

// missingSockets names the listeners that are not held.
func (r *roleLoop) missingSockets() (names []string) {
	for i, c := range r.config.Listen {
		if r.listeners[i] == nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// takeFiles keeps the listeners that a worker of ours hands back. nil: it
// changes nothing.
func (r *roleLoop) takeFiles(in inFiles) input {
	m := in.message
	names := strings.Split(m.Fields["FDNAME"], ":")
	for i, f := range m.Files {
		if i >= len(names) || m.PID != 0 && r.st.byPID(uint32(m.PID)) < 0 || !r.keepSocket(names[i], f) {
			f.Close()
		}
	}
	if r.st.sockets || len(r.missingSockets()) > 0 {
		return nil
	}
	return inSockets{ok: true}
}

// keepSocket takes f over if the role misses a listener of that name. One that
// the config has elsewhere now is bound there: the workers that run go on with
// the old one until they are restarted.
func (r *roleLoop) keepSocket(name string, f *os.File) bool {
	for i, c := range r.config.Listen {
		if c.Name != name || r.listeners[i] != nil {
			continue
		}
		h, err := listen.FromFile(name, f)
		if err != nil {
			r.emit(Event{Type: EventWarning, Text: err.Error()})
			return false
		}
		r.listeners[i] = h
		if h.Fits(c.network(), c.Address) {
			return true
		}
		moved, err := r.bindSocket(i, c)
		if err != nil {
			r.emit(Event{Type: EventWarning, Text: fmt.Sprintf("listener %s stays on %s %v, where an earlier config has put it: %v", name, h.Network(), h.Addr(), err)})
			return true
		}
		r.emit(Event{Type: EventWarning, Text: fmt.Sprintf("listener %s is on %s %v now; the workers that run still serve %s %v, until `standbyd reload` restarts them",
			name, moved.Network(), moved.Addr(), h.Network(), h.Addr())})
		h.Close(false) // they are still reached there
		r.listeners[i] = moved
		return true
	}
	return false
}

// borrowSockets uses the sockets that were lent for listeners whose workers run
// already. Those hold the same ones, if the same ones were lent to the
// supervisor that started them.
func (r *roleLoop) borrowSockets() {
	for i, c := range r.config.Listen {
		if r.listeners[i] == nil {
			r.listeners[i] = r.sup.lent.take(r.config.Name, c)
		}
	}
}

// fetchSockets takes missing listeners out of the workers' own descriptors.
func (r *roleLoop) fetchSockets() input {
	var last error
	for _, p := range r.posts {
		if p.life == nil || len(r.missingSockets()) == 0 {
			continue
		}
		if err := fetchListeners(p.life.process.Identity(), r.missingSockets(), r.keepSocket); err != nil {
			last = err
		}
	}
	missing := r.missingSockets()
	if len(missing) == 0 {
		return inSockets{ok: true}
	}
	err := fmt.Errorf("the workers did not hand back the sockets %s: they are bound again when the workers have ended", strings.Join(missing, ", "))
	if last != nil {
		err = fmt.Errorf("%w (%w)", err, last)
	}
	return inSockets{err: err}
}

// listenFDs reads STANDBYD_LISTEN_FDS: "http=3,admin=4".
func listenFDs(value string) map[string]int {
	fds := map[string]int{}
	for pair := range strings.SplitSeq(value, ",") {
		name, number, ok := strings.Cut(pair, "=")
		var fd int
		if _, err := fmt.Sscanf(number, "%d", &fd); ok && err == nil && fd >= 3 {
			fds[name] = fd
		}
	}
	return fds
}
