//go:build unix

// Package listen binds the sockets that a supervisor holds for a role, so that
// they stay open, with their queues of connections and datagrams, whoever leads.
// It also takes sockets over that exist already: from workers, and from the
// process that started the supervisor.
//
// The holder never accepts or receives. It keeps the descriptor out of the runtime's
// poller and never changes the blocking mode, which all processes that hold
// the socket share.
package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/sockpath"
)

// These can be returned by Bind, with the address and what to do in the text.
var (
	// ErrTaken: another process has the address.
	ErrTaken = errors.New("another process has it")
	// ErrNoServer: FromFile was given something that no client can reach.
	ErrNoServer = errors.New("neither a listening socket nor a UDP one")
)

// Held is a bound socket that listens, or a UDP one. Name is the caller's to set. Its methods
// are safe for concurrent use, except against Close.
type Held struct {
	Name    string
	file    *os.File
	network string
	addr    net.Addr
	own     sockpath.Own // a Unix socket's path as it was when we got it
	gone    bool         // there was no such path any more
	lent    bool         // belongs to the process that started this one
}

// Network is the kind that RoleConfig.Listen means by an empty one.
func Network(network, address string) string {
	switch {
	case network != "":
		return network
	case strings.HasPrefix(address, "/"):
		return "unix"
	}
	return "tcp"
}

// Bind listens on address; network is "tcp", "tcp4", "tcp6", "udp", "udp4",
// "udp6", "unix" or empty (see Network). unixMode is the mode of a Unix socket's path. A socket that a
// crashed process left at the path is replaced, a live one is ErrTaken. Port 0
// takes a free one; Addr says which.
func Bind(network, address string, unixMode fs.FileMode) (*Held, error) {
	network = Network(network, address)
	switch network {
	case "tcp", "tcp4", "tcp6":
	case "udp", "udp4", "udp6":
		return bindPackets(network, address)
	case "unix":
		if err := sockpath.Check(address); err != nil {
			return nil, fmt.Errorf("listen on unix: %w: choose a shorter one", err)
		}
		if err := sockpath.Clear(address); errors.Is(err, sockpath.ErrLive) {
			return nil, fmt.Errorf("listen on unix %s: %w (%w): stop that process or choose another path", address, ErrTaken, err)
		} else if err != nil {
			return nil, fmt.Errorf("listen on unix %s: %w", address, err)
		}
	default:
		return nil, fmt.Errorf("listen on %s %s: unknown network, want \"tcp\", \"udp\" or \"unix\"", network, address)
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		if network != "unix" {
			return nil
		}
		return c.Control(func(fd uintptr) { prepareMode(int(fd), unixMode) })
	}}
	l, err := lc.Listen(context.Background(), network, address)
	if err != nil {
		return nil, explain(network, address, err)
	}
	defer l.Close()
	if ul, ok := l.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false)
		if err := os.Chmod(address, unixMode); err != nil {
			os.Remove(address)
			return nil, fmt.Errorf("listen on unix %s: %w", address, err)
		}
	}
	conn, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("listen on %s %s: %w", network, address, err)
	}
	f, err := unpolled(conn, network+" "+address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s %s: %w", network, address, err)
	}
	return hold("", network, l.Addr(), f), nil
}

// bindPackets binds a socket for datagrams.
func bindPackets(network, address string) (*Held, error) {
	c, err := net.ListenPacket(network, address)
	if err != nil {
		return nil, explain(network, address, err)
	}
	defer c.Close()
	conn, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("listen on %s %s: %w", network, address, err)
	}
	f, err := unpolled(conn, network+" "+address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s %s: %w", network, address, err)
	}
	return hold("", network, c.LocalAddr(), f), nil
}

// FromFile takes over a socket that came from elsewhere, under the given name.
// On success f is closed: Held has a descriptor of its own.
func FromFile(name string, f *os.File) (*Held, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("take over listener %q: %w", name, err)
	}
	var network string
	var addr net.Addr
	cerr := conn.Control(func(fd uintptr) { network, addr, err = reachable(int(fd)) })
	if err = errors.Join(cerr, err); err != nil {
		return nil, fmt.Errorf("take over listener %q: %w", name, err)
	}
	held, err := unpolled(conn, network+" "+addr.String())
	if err != nil {
		return nil, fmt.Errorf("take over listener %q: %w", name, err)
	}
	f.Close()
	return hold(name, network, addr, held), nil
}

func hold(name, network string, addr net.Addr, f *os.File) *Held {
	h := &Held{Name: name, file: f, network: network, addr: addr}
	if network == "unix" {
		var err error
		h.own, err = sockpath.Keep(addr.String())
		h.gone = errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(addr.String(), "/")
	}
	return h
}

// reachable says where clients reach the socket. The error is ErrNoServer.
func reachable(fd int) (network string, addr net.Addr, err error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	packets := kind == unix.SOCK_DGRAM
	if accepting, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); !packets && (err != nil || accepting == 0) {
		return "", nil, ErrNoServer
	}
	inet := func(ip net.IP, port int, zone uint32) (string, net.Addr, error) {
		if packets {
			return "udp", &net.UDPAddr{IP: ip, Port: port, Zone: zoneName(zone)}, nil
		}
		return "tcp", &net.TCPAddr{IP: ip, Port: port, Zone: zoneName(zone)}, nil
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return inet(sa.Addr[:], sa.Port, 0)
	case *unix.SockaddrInet6:
		return inet(sa.Addr[:], sa.Port, sa.ZoneId)
	case *unix.SockaddrUnix:
		if !packets {
			return "unix", &net.UnixAddr{Net: "unix", Name: sa.Name}, nil
		}
	}
	return "", nil, ErrNoServer
}

// zoneName is the interface of a link-local address.
func zoneName(index uint32) string {
	if i, err := net.InterfaceByIndex(int(index)); index != 0 && err == nil {
		return i.Name
	}
	return ""
}

// File is the socket, to be passed on. It stays Held's own: do not close it,
// do not read from it.
func (h *Held) File() *os.File { return h.file }

// Network is "tcp", "udp" (or "tcp4" and so on as asked for) or "unix".
func (h *Held) Network() string { return h.network }

// Addr is where the socket is bound; a port 0 has become a real one.
func (h *Held) Addr() net.Addr { return h.addr }

// Lost tells whether the path of a Unix socket leads to it no more: it was
// removed or replaced, and nobody can connect there. False for one that was
// lent: its path is not ours to look after.
func (h *Held) Lost() bool { return h.gone || h.own.Lost() }

// Close lets go of the socket; processes that were given it keep it.
// unlinkUnix also removes the path of a Unix socket, if it is still ours.
func (h *Held) Close(unlinkUnix bool) error {
	var err error
	if unlinkUnix {
		err = h.own.Remove()
	}
	return errors.Join(err, h.file.Close())
}

// explain turns the errors that people meet into words.
func explain(network, address string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("listen on %s %s: %w (%w): stop that process or choose another address", network, address, ErrTaken, err)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("listen on %s %s: %w: the address needs more rights than this user has", network, address, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("listen on %s %s: %w: no interface of this machine has the address", network, address, err)
	}
	return fmt.Errorf("listen on %s %s: %w", network, address, err)
}
