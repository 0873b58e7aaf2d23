//go:build linux

package logreader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// TestMain lets the test binary play the reader, the stage that starts it, and
// a supervisor that is killed or upgraded.
func TestMain(m *testing.M) {
	Stage()
	launch.Stage()
	if dir := os.Getenv("TEST_SUPERVISE"); dir != "" {
		r := New("kv", dir, func(text string) { fmt.Fprintln(os.Stderr, text) })
		l := r.Log("kv-0", filepath.Join(dir, "logs", "kv-0.log"), capture.Options{MaxBytes: 1 << 30})
		if err := l.Track(filepath.Join(dir, "0.fifo")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		r.Start()
		l.LastWords(0)
		fmt.Println(r.Status().PID)
		select {}
	}
	os.Exit(m.Run())
}

const limit = 60 * time.Second

// rig is a role with one worker: a FIFO, and who writes into it.
type rig struct {
	t    *testing.T
	dir  string
	file string
	w    *os.File
	r    *Reader
	l    *Log

	mu    sync.Mutex
	warns []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := shortdir.New(t)
	g := &rig{t: t, dir: dir, file: filepath.Join(dir, "logs", "kv-0.log")}
	t.Cleanup(func() {
		if g.w != nil {
			g.w.Close()
		}
		if g.r != nil {
			g.r.End()
		}
		if left := others(dir, proc.Identity{}); len(left) > 0 {
			t.Errorf("readers are left: %v", left)
			EndAny(dir)
		}
		if t.Failed() {
			t.Logf("warnings: %q", g.warnings())
		}
	})
	g.fifo()
	g.open()
	return g
}

func (g *rig) path() string { return filepath.Join(g.dir, "0.fifo") }

// fifo makes the FIFO and its writer.
func (g *rig) fifo() {
	g.t.Helper()
	if err := capture.MakeFIFO(g.path(), -1, -1); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) open() {
	g.t.Helper()
	w, err := capture.OpenWriter(g.path())
	if err != nil {
		g.t.Fatal(err)
	}
	g.w = w
}

// supervise begins to be the supervisor of this process.
func (g *rig) supervise() {
	g.t.Helper()
	g.r = New("kv", g.dir, func(text string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.warns = append(g.warns, text)
	})
	g.l = g.r.Log("kv-0", g.file, capture.Options{MaxBytes: 1 << 30})
	if err := g.l.Track(g.path()); err != nil {
		g.t.Fatal(err)
	}
	g.r.Start()
}

func (g *rig) warnings() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.warns)
}

// apart starts a supervisor in a process of its own, from the program exe, and
// returns its process and its reader's pid.
func (g *rig) apart(exe string) (*exec.Cmd, int) {
	g.t.Helper()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "TEST_SUPERVISE="+g.dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil || pid == 0 {
		g.t.Fatalf("the supervisor has reader %d, %v", pid, err)
	}
	return cmd, pid
}

func (g *rig) print(format string, args ...any) {
	g.t.Helper()
	if _, err := fmt.Fprintf(g.w, format, args...); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) lines() []string {
	b, _ := os.ReadFile(g.file)
	var out []string
	for l := range strings.Lines(string(b)) {
		_, text, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		out = append(out, text)
	}
	return out
}

func (g *rig) until(what string, ok func() bool) {
	g.t.Helper()
	eventually.Shows(g.t, what, func() (bool, string) { return ok(), fmt.Sprintf("the log has %.300q", g.lines()) })
}

func (g *rig) has(want ...string) {
	g.t.Helper()
	g.until(fmt.Sprintf("the log has %q", want), func() bool { return slices.Equal(g.lines(), want) })
}

func (g *rig) pid() int {
	g.t.Helper()
	pid := 0
	g.until("there is a reader", func() bool { pid = g.r.Status().PID; return pid != 0 })
	return pid
}

func gone(pid int) bool {
	id, err := proc.Of(pid)
	return err != nil || proc.Judge(id) == proc.Gone
}

func TestLifeOfAReader(t *testing.T) {
	g := newRig(t)
	g.supervise()
	g.print("one\ntwo\nthr")
	if got := g.l.LastWords(2); !slices.Equal(got, []string{"two", "thr"}) {
		t.Errorf("last words: %q", got)
	}
	if got := g.lines(); !slices.Equal(got, []string{"one", "two", "thr"}) {
		t.Errorf("after LastWords the log has %q", got)
	}
	g.l.Note("a note")
	g.print("four\n")
	if got := g.l.LastWords(10); !slices.Equal(got, []string{"standbyd: a note", "four"}) && !slices.Equal(got, []string{"four", "standbyd: a note"}) {
		t.Errorf("last words of the next life: %q", got)
	}
	if got := g.l.Tail(100); len(got) != 5 {
		t.Errorf("tail: %q", got)
	}
	var rec record
	b, _ := os.ReadFile(filepath.Join(g.dir, recordName))
	if err := json.Unmarshal(b, &rec); err != nil || rec.Reader.PID != g.pid() || rec.Protocol != protocol {
		t.Errorf("record: %s, %v", b, err)
	}
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", g.pid()))
	if string(comm) != name+"\n" {
		t.Errorf("it is shown as %q", comm)
	}
	g.print("unfinished")
	pid := g.pid()
	g.r.End()
	if !gone(pid) {
		t.Errorf("the reader lives after End")
	}
	if got := g.lines(); got[len(got)-1] != "unfinished" {
		t.Errorf("after End the log has %q", got)
	}
	if w := g.warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
}

// TestKilledReader: the worker sees nothing, and all that nobody had read is in
// the log.
func TestKilledReader(t *testing.T) {
	g := newRig(t)
	g.supervise()
	want := []string{}
	for round := range 5 {
		line := fmt.Sprintf("round %d", round)
		g.print("%s\n", line)
		want = append(want, line)
		g.has(want...)
		pid := g.pid()
		syscall.Kill(pid, syscall.SIGKILL)
		g.print("%s, nobody reads\n", line)
		want = append(want, line+", nobody reads")
		if got := g.l.LastWords(1); len(got) != 1 || got[0] != line+", nobody reads" {
			t.Errorf("last words, told by the next reader: %q", got)
		}
		g.has(want...)
		if g.pid() == pid {
			t.Error("the same reader")
		}
	}
	if s := g.r.Status(); s.Restarts != 5 || s.Error != "" {
		t.Errorf("status: %+v", s)
	}
}

// TestStoppedReader: one that does not read is replaced, so that the worker
// does not wait for long.
func TestStoppedReader(t *testing.T) {
	g := newRig(t)
	g.supervise()
	pid := g.pid()
	g.l.LastWords(0) // it reads
	syscall.Kill(pid, syscall.SIGSTOP)
	g.until("it is stopped, and has read nothing that it would take along", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return strings.Contains(string(b), ") T ")
	})
	const lines = 100
	long := strings.Repeat("x", 50<<10)
	for range lines { // 5 MiB: more than the FIFO holds
		g.print("%s\n", long)
	}
	g.until("all is in the log", func() bool { return len(g.lines()) == lines })
	if !gone(pid) {
		t.Error("the stopped reader is left")
	}
}

// TestReaderOutlivesItsSupervisor, and the next one takes it over as it is.
func TestReaderOutlivesItsSupervisor(t *testing.T) {
	g := newRig(t)
	exe, _ := os.Executable()
	sup, pid := g.apart(exe)
	g.print("one\n")
	g.has("one")
	sup.Process.Kill()
	sup.Wait()
	var want []string
	for i := range 2000 { // more than the FIFO holds
		want = append(want, fmt.Sprintf("%d %s", i, strings.Repeat("x", 2000)))
		g.print("%s\n", want[i])
	}
	g.has(append([]string{"one"}, want...)...)
	g.supervise()
	if g.pid() != pid {
		t.Errorf("reader %d was replaced by %d", pid, g.pid())
	}
	g.print("two\n")
	if got := g.l.LastWords(1); !slices.Equal(got, []string{"two"}) {
		t.Errorf("last words: %q", got)
	}
	if w := g.warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
}

// TestUpgrade: a supervisor of another build replaces the reader while a
// worker prints, and no byte is lost, doubled or torn.
func TestUpgrade(t *testing.T) {
	g := newRig(t)
	exe, _ := os.Executable()
	older := filepath.Join(g.dir, "older")
	b, err := os.ReadFile(exe)
	if err == nil {
		err = os.WriteFile(older, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	sup, pid := g.apart(older)
	stop, done := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			half := fmt.Sprintf("line %d ", n)
			g.w.WriteString(half) // lines come in pieces
			g.w.WriteString("end\n")
		}
	}()
	g.until("lines come", func() bool { return len(g.lines()) > 100 })
	sup.Process.Kill()
	sup.Wait()
	g.supervise()
	g.until("the old reader is gone", func() bool { return gone(pid) })
	if g.pid() == pid {
		t.Error("the reader of the other build is still used")
	}
	now := len(g.lines())
	g.until("lines come through the new one", func() bool { return len(g.lines()) > now+100 })
	close(stop)
	n := <-done
	g.l.LastWords(0)
	got := g.lines()
	if len(got) != n {
		t.Errorf("%d lines, want %d", len(got), n)
	}
	for i, l := range got {
		if l != fmt.Sprintf("line %d end", i) {
			t.Fatalf("line %d is %q", i, l)
		}
	}
	if w := g.warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
}

// TestCleanedFolder: the worker writes into a FIFO that has no name any more.
func TestCleanedFolder(t *testing.T) {
	g := newRig(t)
	g.supervise()
	g.print("one\n")
	g.has("one")
	clean := func() {
		for _, f := range []string{"0.fifo", socketName, recordName} {
			os.Remove(filepath.Join(g.dir, f))
		}
	}
	clean()
	old := g.w
	defer old.Close()
	fmt.Fprintln(old, "from the old FIFO")
	g.has("one", "from the old FIFO")
	// As when the role is furnished again.
	g.fifo()
	g.open()
	if err := g.l.Track(g.path()); err != nil {
		t.Fatal(err)
	}
	g.r.Renew()
	g.print("from the new FIFO\n")
	g.has("one", "from the old FIFO", "from the new FIFO")
	// Killed now, the next one has both.
	pid := g.pid()
	syscall.Kill(pid, syscall.SIGKILL)
	g.until("there is another reader", func() bool { p := g.r.Status().PID; return p != 0 && p != pid })
	fmt.Fprintln(old, "old again")
	g.has("one", "from the old FIFO", "from the new FIFO", "old again")
	g.print("new again\n")
	g.has("one", "from the old FIFO", "from the new FIFO", "old again", "new again")
	// Nobody holds the old one: it is let go of.
	old.Close()
	g.until("the old FIFO is let go of", func() bool {
		g.r.mu.Lock()
		defer g.r.mu.Unlock()
		return len(g.l.feeds) == 1
	})
}

// TestLostReader: the folder was cleaned while no supervisor ran. The next one
// finds the reader by its mark, ends it in order, and never are there two.
func TestLostReader(t *testing.T) {
	for what, spoil := range map[string]func(dir string){
		"cleaned": func(dir string) { os.Remove(filepath.Join(dir, recordName)) },
		"damaged": func(dir string) {
			os.WriteFile(filepath.Join(dir, recordName), []byte("{\"reader\": {\"pid\": 1"), 0o600)
		},
		"foreign": func(dir string) {
			os.WriteFile(filepath.Join(dir, recordName), []byte(`{"reader":{"pid":1,"start":1,"boot":1,"pidns":1}}`), 0o600)
		},
		"kept": func(string) {},
	} {
		t.Run(what, func(t *testing.T) {
			g := newRig(t)
			exe, _ := os.Executable()
			sup, pid := g.apart(exe)
			sup.Process.Kill()
			sup.Wait()
			g.print("ze")
			os.Remove(filepath.Join(g.dir, socketName))
			spoil(g.dir)
			g.print("ro\n")
			g.has("zero")
			g.print("on")
			g.supervise()
			g.l.LastWords(0)
			g.print("two\n")
			g.has("zero", "on", "two")
			if !gone(pid) {
				t.Error("the lost reader is left")
			}
			if n := len(others(g.dir, proc.Identity{})); n != 1 {
				t.Errorf("%d readers", n)
			}
		})
	}
}

// TestForsakenReader: without a supervisor it stays as long as somebody can
// print, and then ends by itself.
func TestForsakenReader(t *testing.T) {
	g := newRig(t)
	exe, _ := os.Executable()
	sup, pid := g.apart(exe)
	sup.Process.Kill()
	sup.Wait()
	id, err := proc.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGTERM) // makes the while zero
	time.Sleep(3 * lonely)
	g.print("still read\n")
	g.has("still read")
	g.print("last words")
	g.w.Close()
	g.w = nil
	g.until("it has ended", func() bool { return proc.Judge(id) == proc.Gone })
	if got := g.lines(); !slices.Equal(got, []string{"still read", "last words"}) {
		t.Errorf("the log has %q", got)
	}
}

// TestOneReaderForAFIFO: a second one does not get a byte.
func TestOneReaderForAFIFO(t *testing.T) {
	g := newRig(t)
	g.supervise()
	g.l.LastWords(0)
	if _, err := capture.Start(g.path(), g.file+".2", capture.Options{}); err == nil {
		t.Error("a second one reads the same FIFO")
	}
	g.print("one\n")
	g.has("one")
}

// TestLostLinesAreCounted over several readers.
func TestLostLinesAreCounted(t *testing.T) {
	g := newRig(t)
	if err := os.WriteFile(filepath.Join(g.dir, "logs"), nil, 0o600); err != nil { // where the folder should be
		t.Fatal(err)
	}
	g.supervise()
	g.print("one\ntwo\n")
	g.until("two are counted", func() bool { return g.l.Dropped() == 2 })
	pid := g.pid()
	syscall.Kill(pid, syscall.SIGKILL)
	g.until("there is another reader", func() bool { p := g.r.Status().PID; return p != 0 && p != pid })
	g.print("three\n")
	g.until("three are counted", func() bool { return g.l.Dropped() == 3 })
	os.Remove(filepath.Join(g.dir, "logs"))
	g.print("four\n")
	g.until("the log goes on", func() bool { got := g.lines(); return len(got) > 0 && got[len(got)-1] == "four" })
	if g.l.Dropped() != 3 {
		t.Errorf("%d dropped", g.l.Dropped())
	}
}

// TestStrangersSocket: somebody else's socket in the reader's place is not
// spoken to for long, and is replaced.
func TestStrangersSocket(t *testing.T) {
	g := newRig(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(g.dir, socketName)})
	}
	if err == nil {
		err = unix.Listen(fd, 1) // and never answers
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	g.supervise()
	g.print("one\n")
	g.has("one")
}

func TestMessagesInPieces(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := unixConn(pair[0])
	if err != nil {
		t.Fatal(err)
	}
	b, err := unixConn(pair[1])
	if err != nil {
		t.Fatal(err)
	}
	from, to := newConn(a), newConn(b)
	defer from.close()
	defer to.close()
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	big := strings.Repeat("é\n", 300<<10)
	go func() {
		for i := range 3 {
			m := &message{ID: uint64(i), Op: opNote, Line: big}
			for range i {
				m.files = append(m.files, int(null.Fd()))
			}
			from.send(m)
		}
		a.Write([]byte{0xff, 0xff, 0xff, 0xff, 0})
	}()
	for i := range 3 {
		m, err := to.receive()
		if err != nil || m.ID != uint64(i) || m.Line != big || len(m.files) != i {
			t.Fatalf("message %d: %v", i, err)
		}
		var at unix.Stat_t
		for _, fd := range m.files {
			if err := unix.Fstat(fd, &at); err != nil || at.Mode&unix.S_IFMT != unix.S_IFCHR {
				t.Errorf("file %d: %v", fd, err)
			}
		}
		m.closeFiles()
	}
	if _, err := to.receive(); err == nil {
		t.Error("a damaged message was taken")
	}
}

func TestNothingLeaks(t *testing.T) {
	g := newRig(t)
	g.supervise()
	g.l.LastWords(0)
	g.r.End()
	count := func() int { e, _ := os.ReadDir("/proc/self/fd"); return len(e) }
	before := count()
	for range 5 {
		g.supervise()
		g.print("x\n")
		g.l.LastWords(1)
		syscall.Kill(g.pid(), syscall.SIGKILL)
		g.l.LastWords(1)
		g.r.End()
	}
	g.until("the descriptors are given back", func() bool { return count() <= before })
	if stat, _ := os.ReadFile("/proc/self/task/" + fmt.Sprint(os.Getpid()) + "/children"); len(bytes.TrimSpace(stat)) > 0 {
		t.Errorf("children are left: %s", stat)
	}
}
