//go:build unix

package rolesock

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/test/shortdir"
)

func listen(t *testing.T) (*Socket, string) {
	t.Helper()
	path := filepath.Join(shortdir.New(t), "notify.sock")
	s, err := Listen(path, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, path
}

func TestFieldsAndCredentials(t *testing.T) {
	s, path := listen(t)
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", fi.Mode(), err)
	}
	if err := Send(path, "READY=1\njunk\n=x\nSTATUS=a=b\nREADY=2\n", nil); err != nil {
		t.Fatal(err)
	}
	m, err := s.Receive()
	if err != nil {
		t.Fatal(err)
	}
	if want := "map[READY:2 STATUS:a=b]"; fmt.Sprint(m.Fields) != want {
		t.Errorf("fields are %v, want %v", m.Fields, want)
	}
	if runtime.GOOS == "linux" && (m.PID != os.Getpid() || m.UID != os.Getuid()) {
		t.Errorf("sender is pid %d uid %d, want %d and %d", m.PID, m.UID, os.Getpid(), os.Getuid())
	}
}

func TestFilesTravelAndKeepTheirMode(t *testing.T) {
	s, path := listen(t)
	var files []*os.File
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err, i)
		}
		defer f.Close()
		files = append(files, f)
	}
	if err := Send(path, "FDSTORE=1", files); err != nil {
		t.Fatal(err)
	}
	m, err := s.Receive()
	if err != nil {
		t.Fatal(err)
	}
	defer m.CloseFiles()
	if len(m.Files) != 3 {
		t.Fatalf("%d files came", len(m.Files))
	}
	for i, f := range m.Files {
		if got, want := inode(t, f), inode(t, files[i]); got != want {
			t.Errorf("file %d is %d, want %d", i, got, want)
		}
		if !nonblocking(t, files[i]) {
			t.Errorf("sending turned file %d to blocking mode", i)
		}
		if conn, err := f.SyscallConn(); err == nil {
			conn.Control(func(fd uintptr) {
				if flags, _ := unix.FcntlInt(fd, unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
					t.Errorf("file %d stays open over exec", i)
				}
			})
		}
	}
}

func inode(t *testing.T, f *os.File) (ino uint64) {
	t.Helper()
	control(t, f, func(fd int) {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Error(err)
		}
		ino = uint64(st.Ino)
	})
	return ino
}

func nonblocking(t *testing.T, f *os.File) (yes bool) {
	t.Helper()
	control(t, f, func(fd int) {
		flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		yes = flags&unix.O_NONBLOCK != 0
	})
	return yes
}

func control(t *testing.T, f *os.File, use func(fd int)) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) { use(int(fd)) })
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSendWithoutReceiver(t *testing.T) {
	s, path := listen(t)
	if err := Send(path+"x", "A=1", nil); !errors.Is(err, ErrNobody) {
		t.Errorf("no path: %v", err)
	}
	// Nobody receives: at some time the queue is full, and Send says so
	// instead of waiting.
	full := false
	for range 100000 {
		if err := Send(path, "A=1", nil); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			full = true
			break
		}
	}
	if !full {
		t.Error("the queue never filled up")
	}
	s.Close()
	if err := Send(path, "A=1", nil); !errors.Is(err, ErrNobody) {
		t.Errorf("after Close: %v", err)
	}
}

func TestStaleSocketIsReplacedAndALiveOneNot(t *testing.T) {
	s, path := listen(t)
	if _, err := Listen(path, -1, -1); !errors.Is(err, ErrInUse) {
		t.Fatalf("second Listen: %v", err)
	}
	if err := Send(path, "A=1", nil); err != nil {
		t.Fatalf("the live socket is damaged: %v", err)
	}
	// A crash leaves the path behind.
	if err := s.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Skip("this system removes the path itself")
	}
	s2, err := Listen(path, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	// The old one's Close leaves the new one's path alone.
	s.Close()
	if err := Send(path, "B=1", nil); err != nil {
		t.Error(err)
	}
}

func TestFilesOfOtherKindsAreNotTouched(t *testing.T) {
	path := filepath.Join(shortdir.New(t), "f")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, -1, -1); err == nil {
		t.Fatal("listened over a file")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file reads %q", b)
	}
}

func TestOddDatagramsAreIgnored(t *testing.T) {
	s, path := listen(t)
	before := openFDs(t)
	if err := send(path, string(make([]byte, MaxState+1)), nil); err != nil {
		t.Fatal(err)
	}
	if err := send(path, "A=1", make([]int, MaxFiles+8)); err != nil { // descriptor 0, many times
		t.Fatal(err)
	}
	if err := Send(path, "LAST=1", nil); err != nil {
		t.Fatal(err)
	}
	m, err := s.Receive()
	if err != nil || m.Fields["LAST"] != "1" {
		t.Fatalf("received %v, %v", m, err)
	}
	if s.Ignored() != 2 {
		t.Errorf("%d ignored, want 2", s.Ignored())
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestLongPathIsExplained(t *testing.T) {
	path := "/tmp/" + strings.Repeat("x", 120)
	_, err := Listen(path, -1, -1)
	if err == nil || !strings.Contains(err.Error(), "shorter runtime folder") {
		t.Errorf("Listen: %v", err)
	}
	if err := Send(path, "A=1", nil); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("Send: %v", err)
	}
}

func TestCloseEndsReceive(t *testing.T) {
	s, path := listen(t)
	got := make(chan error, 1)
	go func() {
		_, err := s.Receive()
		got <- err
	}()
	s.Close()
	s.Close()
	select {
	case err := <-got:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("Receive: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Receive still waits")
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the path is still there: %v", err)
	}
}

func TestOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may give a file away")
	}
	path := filepath.Join(shortdir.New(t), "s")
	s, err := Listen(path, 4242, 4243)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Uid != 4242 || st.Gid != 4243 {
		t.Errorf("owner is %d:%d, %v", st.Uid, st.Gid, err)
	}
}

var _ io.Closer = (*Socket)(nil)
