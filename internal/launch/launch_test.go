//go:build unix

package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

func TestStagedProgramGetsWhatWasOrdered(t *testing.T) {
	dir, _ := filepath.EvalSymlinks(t.TempDir())
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	segment := output(t)
	out := output(t)
	spec := self("report")
	spec.Env = []string{"A=0", "A=1", "BYTES=\xff\xfe", "LISTEN_PID=7", "STANDBYD_SEGMENT_FD=99"}
	spec.Dir, spec.Umask, spec.Stdout = dir, 0o27, out
	spec.Listeners, spec.ListenNames, spec.Segment = files, []string{"http", "admin"}, segment
	p := start(t, spec)
	if text := read(t, out); text != "" {
		t.Fatalf("the program ran before Release: %q", text)
	}
	release(t, p)
	if s := ended(t, p); s != (Status{Known: true}) {
		t.Fatalf("ended with %v: %s", s, read(t, out))
	}
	text := read(t, out)
	got := values(text, "")
	pid := strconv.Itoa(p.Identity().PID)
	want := map[string]string{"pid": pid, "pgid": pid, "ppid": strconv.Itoa(os.Getpid()), "dir": dir, "umask": "027", "argv0": "tw"}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %q, want %q", k, got[k], v)
		}
	}
	env := values(text, "env:")
	wantEnv := map[string]string{
		"A": "1", "BYTES": "\xff\xfe", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "http:admin", "LISTEN_PID": pid, "STANDBYD_PID": pid,
		"STANDBYD_LISTEN_FDS": "http=3,admin=4", "STANDBYD_SEGMENT_FD": "5",
	}
	if fmt.Sprint(env) != fmt.Sprint(wantEnv) {
		t.Errorf("environment is\n%v, want\n%v", env, wantEnv)
	}
	fi, _ := segment.Stat()
	ino := strconv.FormatUint(fi.Sys().(*syscall.Stat_t).Ino, 10)
	fds := values(text, "fd:")
	if len(fds) != 6 || fds["5"] != ino || fds["1"] != fds["2"] {
		t.Errorf("descriptors are %v, want 0 to 5, the segment (%s) last", fds, ino)
	}
}

func TestStrayDescriptorsAreNotPassedOn(t *testing.T) {
	// As a shell does that has locked something on a descriptor of its own.
	fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	out := output(t)
	spec := self("report")
	spec.Stdout = out
	p := start(t, spec)
	release(t, p)
	ended(t, p)
	if fds := values(read(t, out), "fd:"); len(fds) != 3 {
		t.Errorf("descriptors are %v, want 0, 1 and 2", fds)
	}
}

func TestUserAndGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may change the user")
	}
	for _, staged := range []bool{true, false} {
		out := output(t)
		spec := self("report")
		// The test binary's folder may be closed to others.
		spec.Path, spec.Args = "/bin/sh", []string{"sh", "-c", "echo uid=$(id -u); echo gid=$(id -g); echo groups=$(id -G)"}
		spec.Stdout, spec.Staged = out, staged
		spec.Credential = &Credential{UID: 4242, GID: 4243, Groups: []uint32{4244, 4245}}
		p := start(t, spec)
		if staged {
			release(t, p)
		}
		ended(t, p)
		got := values(read(t, out), "")
		if got["uid"] != "4242" || got["gid"] != "4243" || got["groups"] != "4243 4244 4245" {
			t.Errorf("staged %v: runs as %v", staged, got)
		}
	}
}

func TestErrorsNameTheStep(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	missing := filepath.Join(dir, "kv")
	script := file("script", "#!/no/such/interpreter\n", 0o755)
	plain := file("plain", "text", 0o644)
	garbage := file("garbage", "\x01\x02", 0o755)
	for _, c := range []struct {
		spec  Spec
		want  string
		errno error
	}{
		{Spec{Path: missing}, "start " + missing + ": exec: no such file or directory", syscall.ENOENT},
		{Spec{Path: script}, "start " + script + ": exec: no such file or directory (the file exists, but the interpreter or loader that it names does not)", syscall.ENOENT},
		{Spec{Path: plain}, "start " + plain + ": exec: permission denied (the file is not executable: chmod +x)", syscall.EACCES},
		{Spec{Path: dir}, "start " + dir + ": exec: permission denied (it is a directory)", syscall.EACCES},
		{Spec{Path: garbage}, "start " + garbage + ": exec: exec format error (neither a program for this machine nor a script that starts with #!)", syscall.ENOEXEC},
		{Spec{Path: "/bin/true", Dir: missing}, "start /bin/true: enter the working directory " + missing + ": no such file or directory", syscall.ENOENT},
		{Spec{Path: "/bin/true", Dir: plain}, "start /bin/true: enter the working directory " + plain + ": not a directory", syscall.ENOTDIR},
	} {
		for _, staged := range []bool{true, false} {
			c.spec.Umask, c.spec.Staged = -1, staged
			p, err := Start(c.spec)
			if staged {
				if err != nil {
					t.Fatal(err)
				}
				err = p.Release()
				if s := ended(t, p); s.Code != 127 {
					t.Errorf("%s: ended with %v, want 127", c.want, s)
				}
				if rerr := p.Release(); !errors.Is(rerr, ErrNotStaged) {
					t.Errorf("second Release: %v", rerr)
				}
				p.Reap()
				p.Close()
			}
			if err == nil || err.Error() != c.want || !errors.Is(err, c.errno) {
				t.Errorf("staged %v: got\n%v, want\n%v", staged, err, c.want)
			}
		}
	}
}

func TestSpecsThatCannotWork(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, "no program is named"},
		{Spec{Path: "/bin/true", Umask: 0o22}, "umask needs the launch stage"},
		{Spec{Path: "/bin/true", Umask: -1, Listeners: []*os.File{os.Stdin}}, "1 listeners have 0 names"},
		{Spec{Path: "/bin/true", Umask: -1, Env: []string{"A=\x00"}}, "zero byte"},
		{Spec{Path: "/bin/true", Umask: -1, Listeners: []*os.File{os.Stdin}, ListenNames: []string{"a:b"}}, "characters"},
	} {
		_, err := Start(c.spec)
		var e *Error
		if !errors.As(err, &e) || e.Step != "spec" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want one that says %q", err, c.want)
		}
	}
}

func TestStageDiesWithItsParent(t *testing.T) {
	out := output(t)
	spec := self("parent")
	spec.Args[0] = testBinary
	spec.Stdout, spec.Staged = out, false
	p := start(t, spec)
	eventually.Holds(t, "the parent has started a stage", func() bool { return strings.HasSuffix(read(t, out), "\n") })
	pid, err := strconv.Atoi(values(read(t, out), "")["staged"])
	if err != nil {
		t.Fatalf("the parent said %q", read(t, out))
	}
	id, err := proc.Of(pid)
	if err != nil {
		t.Fatalf("the stage does not wait: %v", err)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if s := ended(t, p); s.Signal != syscall.SIGKILL {
		t.Fatalf("the parent ended with %v", s)
	}
	eventually.Holds(t, "the stage is gone", func() bool { return proc.Judge(id) == proc.Gone })
}

func TestCloseEndsAProcessAtTheGate(t *testing.T) {
	p := start(t, self("hang"))
	id := p.Identity()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if v := proc.Judge(id); v != proc.Gone {
		t.Errorf("after Close it is %v", v)
	}
	if err := p.Release(); !errors.Is(err, ErrNotStaged) {
		t.Errorf("Release after Close: %v", err)
	}
}

func TestReleaseOfAKilledStage(t *testing.T) {
	p := start(t, self("hang"))
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, p)
	if err := p.Release(); !errors.Is(err, proc.ErrGone) {
		t.Errorf("Release: %v", err)
	}
}
