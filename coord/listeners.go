package coord

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
)

// inherited holds the descriptors that the process was launched with. They
// belong to the process, not to a member: a process that leaves and joins
// again finds them again, so nobody closes them.
var inherited struct {
	sync.Mutex
	files map[int]*os.File
}

// inheritedFile is descriptor fd as a file that is never closed. From the
// first call on, processes that this one starts do not inherit it.
func inheritedFile(fd int, name string) (*os.File, error) {
	inherited.Lock()
	defer inherited.Unlock()
	if f := inherited.files[fd]; f != nil {
		return f, nil
	}
	f, err := takeFD(fd, name)
	if err != nil {
		return nil, fmt.Errorf("take over descriptor %d (%s): %w", fd, name, err)
	}
	if inherited.files == nil {
		inherited.files = make(map[int]*os.File)
	}
	inherited.files[fd] = f
	return f, nil
}

// heldListener is a socket that the supervisor holds for the role.
type heldListener struct {
	name string
	file *os.File
}

func takeListeners(fds []listenFD) ([]heldListener, error) {
	var held []heldListener
	for _, l := range fds {
		f, err := inheritedFile(l.fd, "listener "+l.name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrEnvironment, envListenFDs, err)
		}
		held = append(held, heldListener{l.name, f})
	}
	return held, nil
}

// Listener is the socket called name that the supervisor holds for the role.
// Connections wait in it while nobody leads, and are refused at no time. Each
// call returns a new net.Listener on the same socket: close it when lead
// drains, the socket itself stays open. The error is ErrNoListener if the role
// has none of that name. Safe for concurrent use.
func (l *Leadership) Listener(name string) (net.Listener, error) {
	return l.m.listener(name)
}

func (m *Member) listener(name string) (net.Listener, error) {
	for _, h := range m.listeners {
		if h.name != name {
			continue
		}
		ln, err := net.FileListener(h.file) // a duplicate of the descriptor
		if err != nil {
			return nil, fmt.Errorf("listen on the role's socket %q: %w", name, err)
		}
		return ln, nil
	}
	return nil, fmt.Errorf("%w: %q (the role has: %s)", ErrNoListener, name, listenerNames(m.listeners, ", "))
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

var errBadFD = errors.New("it is not open")
