package coord

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// heldListener is a socket that the supervisor holds for the role, as this
// process inherited it. The descriptor stays a bare number and belongs to the
// process for as long as it lives: an os.File would enter it into the runtime's
// poller, and every connection would wake every standby; and a process that
// leaves and joins again wants to find it again.
type heldListener struct {
	name    string
	fd      int
	packets bool // takes datagrams, not connections
}

func takeListeners(fds []listenFD) ([]heldListener, error) {
	var held []heldListener
	for _, l := range fds {
		packets, err := checkSocket(l.fd)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: descriptor %d (%s): %w", ErrEnvironment, envListenFDs, l.fd, l.name, err)
		}
		held = append(held, heldListener{l.name, l.fd, packets})
	}
	return held, nil
}

// Listener is the socket called name that the supervisor holds for the role.
// Connections wait in it while nobody leads, and are refused at no time. Each
// call returns a new net.Listener on the same socket: close it when lead
// drains, the socket itself stays open. The error is ErrNoListener if the role
// has none of that name that takes connections. Safe for concurrent use.
func (l *Leadership) Listener(name string) (net.Listener, error) {
	f, err := l.m.socket(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ln, err := net.FileListener(f) // duplicates it once more
	if err != nil {
		return nil, fmt.Errorf("listen on the role's socket %q: %w", name, err)
	}
	return ln, nil
}

// PacketConn is the UDP socket called name that the supervisor holds for the
// role. Datagrams that arrive while nobody leads wait in its buffer, as many as
// fit; what a leader has read and not answered when it ends is lost. Each call
// returns a new net.PacketConn (a *net.UDPConn) on the same socket: close it
// when lead drains, before lead returns, or this process goes on reading what
// is the next leader's; the socket itself stays open. The error is
// ErrNoListener if the role has none of that name that takes datagrams. Safe
// for concurrent use.
func (l *Leadership) PacketConn(name string) (net.PacketConn, error) {
	f, err := l.m.socket(name, true)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pc, err := net.FilePacketConn(f) // duplicates it once more
	if err != nil {
		return nil, fmt.Errorf("receive on the role's socket %q: %w", name, err)
	}
	return pc, nil
}

// socket is a duplicate of the socket called name, the caller's to close.
func (m *Member) socket(name string, packets bool) (*os.File, error) {
	for _, h := range m.listeners {
		switch {
		case h.name != name:
		case h.packets && !packets:
			return nil, fmt.Errorf("%w: %q takes datagrams: use PacketConn", ErrNoListener, name)
		case !h.packets && packets:
			return nil, fmt.Errorf("%w: %q takes connections: use Listener", ErrNoListener, name)
		default:
			return duplicate(h.fd, "listener "+name)
		}
	}
	return nil, fmt.Errorf("%w: %q (the role has: %s)", ErrNoListener, name, listenerNames(m.listeners, ", "))
}

// listenerFiles are duplicates, the caller's to close.
func listenerFiles(held []heldListener) ([]*os.File, error) {
	var files []*os.File
	for _, h := range held {
		f, err := duplicate(h.fd, "listener "+h.name)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func listenerNames(held []heldListener, sep string) string {
	if len(held) == 0 {
		return "none"
	}
	names := make([]string, len(held))
	for i, h := range held {
		names[i] = h.name
	}
	return strings.Join(names, sep)
}
