//go:build unix

package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/test/shortdir"
)

func bind(t *testing.T, network, address string) *Held {
	t.Helper()
	h, err := Bind(network, address, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(true) })
	return h
}

func socketPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(shortdir.New(t), "s")
}

// serve accepts one connection on a duplicate, as a worker would, and echoes.
func serve(t *testing.T, h *Held) {
	t.Helper()
	l, err := net.FileListener(h.File())
	if err != nil {
		t.Fatal(err)
	}
	if ul, ok := l.(*net.UnixListener); ok {
		ul.SetUnlinkOnClose(false)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
}

func echo(t *testing.T, h *Held) {
	t.Helper()
	c, err := net.Dial(h.Addr().Network(), h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
		t.Fatalf("echo is %q, %v", b, err)
	}
}

func nonblocking(t *testing.T, f *os.File) (yes bool) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	conn.Control(func(fd uintptr) {
		flags, _ := unix.FcntlInt(fd, unix.F_GETFL, 0)
		yes = flags&unix.O_NONBLOCK != 0
		if flags, _ := unix.FcntlInt(fd, unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s stays open over exec", f.Name())
		}
	})
	return yes
}

func TestHeldSocketsServe(t *testing.T) {
	for _, c := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"", "127.0.0.1:0"}, {"unix", socketPath(t)}, {"", socketPath(t)},
	} {
		h := bind(t, c.network, c.address)
		if strings.HasSuffix(h.Addr().String(), ":0") {
			t.Errorf("address is %v", h.Addr())
		}
		serve(t, h)
		// Asking for Fd, as os/exec does, must not stop those who accept.
		h.File().Fd()
		if !nonblocking(t, h.File()) {
			t.Errorf("%s %s: the shared socket was turned to blocking mode", c.network, c.address)
		}
		echo(t, h)
	}
}

func TestTakenAddress(t *testing.T) {
	h := bind(t, "tcp", "127.0.0.1:0")
	_, err := Bind("tcp", h.Addr().String(), 0)
	if !errors.Is(err, ErrTaken) || !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("tcp: %v", err)
	}
	if want := "listen on tcp " + h.Addr().String() + ": another process has it"; err != nil && !strings.HasPrefix(err.Error(), want) {
		t.Errorf("tcp: %v, want %q", err, want)
	}
	u := bind(t, "unix", socketPath(t))
	if _, err := Bind("unix", u.Addr().String(), 0o600); !errors.Is(err, ErrTaken) {
		t.Errorf("unix: %v", err)
	}
	serve(t, u)
	echo(t, u)
}

func TestBadAddresses(t *testing.T) {
	file := socketPath(t)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ network, address, want string }{
		{"sctp", "127.0.0.1:0", "unknown network"},
		{"udp", "127.0.0.1", "missing port"},
		{"udp", "192.0.2.1:80", "no interface"},
		{"tcp", "127.0.0.1", "missing port"},
		{"tcp", "192.0.2.1:80", "no interface"},
		{"unix", file, "no socket"},
		{"unix", "/tmp/" + strings.Repeat("x", 120), "shorter"},
	} {
		h, err := Bind(c.network, c.address, 0o600)
		if err == nil {
			h.Close(true)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.network, c.address, err, c.want)
		}
	}
}

func TestUnixPath(t *testing.T) {
	path := socketPath(t)
	h := bind(t, "unix", path)
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode is %v, %v", fi.Mode(), err)
	}
	// A crash leaves the path; the next Bind replaces it.
	if err := h.Close(false); err != nil {
		t.Fatal(err)
	}
	h2 := bind(t, "unix", path)
	// The first one's path is not there any more: not its to remove.
	h.own.Remove()
	serve(t, h2)
	echo(t, h2)
	if err := h2.Close(true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the path is still there: %v", err)
	}
}

func TestFromFile(t *testing.T) {
	for _, h := range []*Held{bind(t, "tcp", "127.0.0.1:0"), bind(t, "tcp", "[::1]:0"), bind(t, "unix", socketPath(t))} {
		serve(t, h) // non-blocking from here on
		dup := -1
		conn, _ := h.File().SyscallConn()
		conn.Control(func(fd uintptr) { dup, _ = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
		got, err := FromFile("http", os.NewFile(uintptr(dup), "received"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != "http" || got.Addr().String() != h.Addr().String() || got.Network() != h.Network() {
			t.Errorf("took over %q %s %v, want %s %v", got.Name, got.Network(), got.Addr(), h.Network(), h.Addr())
		}
		got.File().Fd()
		if !nonblocking(t, got.File()) {
			t.Error("the shared socket was turned to blocking mode")
		}
		echo(t, got)
		if err := got.Close(true); err != nil {
			t.Error(err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	if _, err := FromFile("x", r); !errors.Is(err, ErrNoServer) {
		t.Errorf("a pipe: %v", err)
	}
}
