package supervisor

import (
	"fmt"
	"os"
	"sync"

	"github.com/standbyd/standbyd/internal/listen"
)

// Socket is a socket that exists already and is lent to the supervisor: systemd
// passes those of a socket unit. It serves the listener of the same kind that
// has its address, or else its name: ROLE.NAME, or NAME if no other role has a
// listener of that name.
type Socket struct {
	Name string
	// File is the socket. Run takes it over and closes it.
	File *os.File
}

// lentSockets are the sockets that listeners use in place of ones that they
// would bind. They are kept, beside what the roles hold, for as long as the
// supervisor runs: a listener that goes and comes back finds its socket again,
// and nobody else could have the address meanwhile. Safe for concurrent use.
type lentSockets struct {
	mu   sync.Mutex
	list []*lentSocket
}

type lentSocket struct {
	held           *listen.Held
	role, listener string // that it was lent for
}

// takeSockets finds the listener of each lent socket. Those that no listener
// wants are closed, with a warning: their clients would wait for ever.
func (s *Supervisor) takeSockets() {
	warn := func(format string, args ...any) {
		s.bus.publish(Event{Type: EventWarning, Text: fmt.Sprintf(format, args...)})
	}
	var free []*listen.Held
	for _, lent := range s.config.Sockets {
		h, err := listen.FromLent(lent.Name, lent.File)
		if err != nil {
			lent.File.Close()
			warn("%s was passed to standbyd and is of no use, so it is closed: %v", lent.File.Name(), err)
			continue
		}
		free = append(free, h)
	}
	owners := map[string]int{}
	for _, c := range s.config.Roles {
		for _, l := range c.Listen {
			owners[l.Name]++
		}
	}
	rules := []func(h *listen.Held, role string, l ListenConfig) bool{
		func(h *listen.Held, _ string, l ListenConfig) bool { return h.IsAt(l.network(), l.Address) },
		func(h *listen.Held, role string, l ListenConfig) bool { return h.Name == role+"."+l.Name },
		func(h *listen.Held, _ string, l ListenConfig) bool { return h.Name == l.Name && owners[l.Name] == 1 },
	}
	for _, rule := range rules {
		for _, c := range s.config.Roles {
			for _, l := range c.Listen {
				for i, h := range free {
					if h == nil || !h.OfKind(l.network()) || s.lent.of(c.Name, l.Name) != nil || !rule(h, c.Name, l) {
						continue
					}
					free[i] = nil
					s.lent.list = append(s.lent.list, &lentSocket{h, c.Name, l.Name})
				}
			}
		}
	}
	for _, h := range free {
		if h == nil {
			continue
		}
		why := "no listener of the config is of its kind and has its address or name"
		if owners[h.Name] > 1 {
			why = fmt.Sprintf("several roles have a listener %q and none has its address: call it ROLE.%s", h.Name, h.Name)
		}
		warn("the socket %q on %s %v was passed to standbyd, and %s: closed", h.Name, h.Network(), h.Addr(), why)
		h.Close(false)
	}
}

// of is the socket that was lent for a listener, or nil.
func (p *lentSockets) of(role, listener string) *lentSocket {
	for _, l := range p.list {
		if l.role == role && l.listener == listener {
			return l
		}
	}
	return nil
}

// take is a lent socket for a listener: the one that was lent for it, or one
// that has its address. nil: none was.
func (p *lentSockets) take(role string, c ListenConfig) *listen.Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.of(role, c.Name)
	for _, l := range p.list {
		if l.held.IsAt(c.network(), c.Address) {
			found = l
			break
		}
	}
	if found == nil || !found.held.OfKind(c.network()) {
		return nil
	}
	h, err := found.held.Again()
	if err != nil {
		return nil // then binding it says what is wrong
	}
	h.Name = c.Name
	return h
}

// close lets go of them. The roles have closed theirs.
func (p *lentSockets) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.list {
		l.held.Close(false)
	}
	p.list = nil
}
