//go:build unix

package listen

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/sockpath"
)

// firstLent is the first descriptor that a process is lent, after the standard
// ones.
const firstLent = 3

// maxLent is more than anybody passes on.
const maxLent = 1024

// Lent is a descriptor that the process was started with.
type Lent struct {
	Name string // as the starter calls it; "unknown" if it does not tell
	File *os.File
}

// LentByEnvironment returns the descriptors that LISTEN_PID, LISTEN_FDS and
// LISTEN_FDNAMES speak of, as systemd sets them for a socket unit, and removes
// these variables, so that nothing that this process starts takes them for its
// own. Descriptors of another process (LISTEN_PID is not ours) are left alone.
// From then on, programs that this process starts do not inherit the
// descriptors. Call it once, before anything is started.
func LentByEnvironment() ([]Lent, error) {
	get := func(name string) string {
		value := os.Getenv(name)
		os.Unsetenv(name)
		return value
	}
	pid, number, names := get("LISTEN_PID"), get("LISTEN_FDS"), get("LISTEN_FDNAMES")
	get("LISTEN_PIDFDID")
	if pid != strconv.Itoa(os.Getpid()) || number == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > maxLent {
		return nil, fmt.Errorf("take over sockets: LISTEN_FDS is %q: want how many descriptors from %d on are passed", number, firstLent)
	}
	var called []string
	if names != "" {
		called = strings.Split(names, ":")
		if len(called) != n {
			return nil, fmt.Errorf("take over sockets: LISTEN_FDNAMES has %d names for %d descriptors (LISTEN_FDS)", len(called), n)
		}
	}
	var list []Lent
	for i := range n {
		fd := firstLent + i
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return nil, fmt.Errorf("take over sockets: LISTEN_FDS is %d, and descriptor %d is not open", n, fd)
		}
		unix.CloseOnExec(fd)
		name := "unknown"
		if called != nil {
			name = called[i]
		}
		list = append(list, Lent{name, os.NewFile(uintptr(fd), fmt.Sprintf("descriptor %d (%q)", fd, name))})
	}
	return list, nil
}

// FromLent is FromFile for a socket that belongs to the process that started
// this one: Close leaves its path alone.
func FromLent(name string, f *os.File) (*Held, error) {
	h, err := FromFile(name, f)
	if err != nil {
		return nil, err
	}
	h.own, h.gone, h.lent = sockpath.Own{}, false, true
	return h, nil
}

// Again is the same socket, held a second time.
func (h *Held) Again() (*Held, error) {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("hold %s %v again: %w", h.network, h.addr, err)
	}
	f, err := unpolled(conn, h.file.Name())
	if err != nil {
		return nil, fmt.Errorf("hold %s %v again: %w", h.network, h.addr, err)
	}
	return &Held{Name: h.Name, file: f, network: h.network, addr: h.addr, own: h.own, lent: h.lent}, nil
}

// Same tells whether f is another descriptor of the same socket.
func (h *Held) Same(f *os.File) bool {
	a, aerr := h.file.Stat()
	b, berr := f.Stat()
	return aerr == nil && berr == nil && os.SameFile(a, b)
}

// Fits tells whether the socket is what Bind could have given for this network
// and address: of the same kind, at the same place. Any port does for port 0.
func (h *Held) Fits(network, address string) bool { return h.isAt(network, address, true) }

// IsAt is Fits for an address that tells one socket from all others: port 0
// does not.
func (h *Held) IsAt(network, address string) bool { return h.isAt(network, address, false) }

func (h *Held) isAt(network, address string, anyPort bool) bool {
	network = Network(network, address)
	if !h.OfKind(network) {
		return false
	}
	switch has := h.addr.(type) {
	case *net.UnixAddr:
		return has.Name == filepath.Clean(address)
	case *net.TCPAddr:
		want, err := net.ResolveTCPAddr(network, address)
		return err == nil && fits(has.IP, want.IP, has.Port, want.Port, anyPort)
	case *net.UDPAddr:
		want, err := net.ResolveUDPAddr(network, address)
		return err == nil && fits(has.IP, want.IP, has.Port, want.Port, anyPort)
	}
	return false
}

// fits: an address without a host is any that stands for all of the machine's.
func fits(has, want net.IP, hasPort, wantPort int, anyPort bool) bool {
	if hasPort != wantPort && !(wantPort == 0 && anyPort) {
		return false
	}
	return has.Equal(want) || want == nil && has.IsUnspecified()
}

// OfKind tells whether the socket serves the clients of this network.
func (h *Held) OfKind(network string) bool {
	return strings.TrimRight(h.network, "46") == strings.TrimRight(network, "46")
}

// IsLent tells whether the socket belongs to the process that started this one.
func (h *Held) IsLent() bool { return h.lent }
