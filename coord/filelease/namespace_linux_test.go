//go:build linux

package filelease

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

func init() {
	roles["inside"] = func(args []string) { // a claimant that is pid 1 of its own namespace
		mountProc()
		obey(args[0])
	}
	roles["reuse"] = func(args []string) { reusePid(args[0]) }
	roles["odd"] = func(args []string) { // a claimant with a name that misleads
		os.WriteFile("/proc/self/comm", []byte("a) R 1 (b"), 0)
		obey(args[0])
	}
}

func mountProc() {
	unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// inNamespace is a command that runs as pid 1 of a new pid namespace.
func inNamespace(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for a pid namespace")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	return cmd
}

// TestPidNamespaces: a pid means nothing across them; the lock and time do.
func TestPidNamespaces(t *testing.T) {
	t.Run("holder inside", func(t *testing.T) {
		root := t.TempDir()
		s := open(t, root)
		c := start(t, inNamespace(t, "inside", root))
		if word, n := c.ask("claim kv"); word != "ok" || n != 1 {
			t.Fatal(word, n)
		}
		_, err := s.Claim(within(t), "kv", Claimant{})
		heldBy(t, err, 1)
		// Without its lock there is no proof, and its pid is not looked up here.
		os.Remove(s.file("kv", liveSuffix))
		edit(t, s, "kv", func(r *record) { r.PID = 1 << 22; r.Start = 1 })
		_, err = s.Claim(within(t), "kv", Claimant{})
		heldBy(t, err, 1<<22)
	})
	t.Run("holder inside, killed", func(t *testing.T) {
		root := t.TempDir()
		s := open(t, root)
		c := start(t, inNamespace(t, "inside", root))
		if word, _ := c.ask("claim kv"); word != "ok" {
			t.Fatal(word)
		}
		c.kill()
		if l := claim(t, s, "kv"); l.Epoch() != 2 {
			t.Errorf("epoch is %d", l.Epoch())
		}
	})
	t.Run("reader inside", func(t *testing.T) {
		root := t.TempDir()
		s := open(t, root)
		l := claim(t, s, "kv")
		c := start(t, inNamespace(t, "inside", root))
		if word, n := c.ask("claim kv"); word != "held" || n != uint64(os.Getpid()) {
			t.Fatal(word, n)
		}
		// The holder has the reader's own pid, in another namespace.
		edit(t, s, "kv", func(r *record) { r.PID = 1 })
		if word, n := c.ask("claim kv"); word != "held" || n != 1 {
			t.Fatal(word, n)
		}
		letGo(l.claim)
		if word, n := c.ask("claim kv"); word != "ok" || n != 2 {
			t.Fatal(word, n)
		}
	})
}

// TestPidReuse: a dead holder's pid is given to a stranger, really.
func TestPidReuse(t *testing.T) {
	cmd := inNamespace(t, "reuse", t.TempDir())
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if strings.HasPrefix(text, "skip") {
		t.Skip(text)
	}
	if err != nil || text != "ok" {
		t.Fatalf("%v: %s", err, text)
	}
}

// reusePid runs as pid 1 of a namespace.
func reusePid(root string) {
	fail := func(format string, args ...any) {
		fmt.Printf(format+"\n", args...)
		os.Exit(1)
	}
	mountProc()
	s, err := Open(root)
	if err != nil {
		fail("%v", err)
	}
	holder := exec.Command(os.Args[0], "claimant", root)
	in, _ := holder.StdinPipe()
	out, _ := holder.StdoutPipe()
	if err := holder.Start(); err != nil {
		fail("%v", err)
	}
	pid := holder.Process.Pid
	fmt.Fprintln(in, "claim kv")
	answer := make([]byte, 16)
	if n, _ := out.Read(answer); !strings.HasPrefix(string(answer[:n]), "ok 1") {
		fail("the holder said %q", answer)
	}
	holder.Process.Kill()
	holder.Wait()
	time.Sleep(30 * time.Millisecond)   // start times have a resolution of 10 ms
	os.Remove(s.file("kv", liveSuffix)) // so that only the pid can tell
	var stranger *exec.Cmd
	for range 50 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			fmt.Println("skip: ns_last_pid cannot be written:", err)
			os.Exit(0)
		}
		c := exec.Command("sleep", "1000")
		if err := c.Start(); err != nil {
			fail("%v", err)
		}
		if c.Process.Pid == pid {
			stranger = c
			break
		}
		c.Process.Kill()
		c.Wait()
	}
	if stranger == nil {
		fail("the pid was not given out again")
	}
	defer stranger.Wait()
	defer stranger.Process.Kill()
	status, err := s.Inspect(context.Background(), "kv")
	if err != nil || status.State != StateDead {
		fail("with the pid of a stranger: %q, %v, %v", status.State, err, status.Err)
	}
	// The same with the stranger's own start time: that is the holder.
	who, err := proc.Of(pid)
	if err != nil {
		fail("%v", err)
	}
	f, err := s.find("kv")
	if err != nil {
		fail("%v", err)
	}
	f.r.Start = who.Start
	if _, err := s.write(f.r); err != nil {
		fail("%v", err)
	}
	if status, err = s.Inspect(context.Background(), "kv"); err != nil || status.State != StateHeld {
		fail("with the right start time: %q, %v", status.State, err)
	}
	f.r.Start = who.Start + 1
	s.write(f.r)
	l, err := s.Claim(context.Background(), "kv", Claimant{})
	if err != nil || l.Epoch() != 2 {
		fail("%+v, %v", l, err)
	}
	if stranger.Process.Signal(syscall.Signal(0)) != nil {
		fail("the stranger was hurt")
	}
	fmt.Println("ok")
}

// withoutLock makes a record of the key that names pid, with no lock to tell.
func withoutLock(t *testing.T, s *Store, pid int, startTime uint64) {
	t.Helper()
	l := claim(t, s, "kv")
	edit(t, s, "kv", func(r *record) { r.PID, r.Start, r.Live, r.Run = pid, startTime, 0, "other" })
	letGo(l.claim)
}

func TestAThreadIsNoProcess(t *testing.T) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	tid := 0
	for _, task := range tasks { // one of the runtime's own always lives
		if n, _ := strconv.Atoi(task.Name()); n != os.Getpid() {
			tid = n
		}
	}
	s := open(t, t.TempDir())
	withoutLock(t, s, tid, 0)
	if st, err := s.Inspect(within(t), "kv"); err != nil || st.State != StateDead {
		t.Errorf("a thread as holder: %q, %v", st.State, err)
	}
}

// TestZombieWithoutItsLockIsDead: by its state alone.
func TestZombieWithoutItsLockIsDead(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	who, err := proc.Of(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, t.TempDir())
	withoutLock(t, s, who.PID, who.Start)
	if st, err := s.Inspect(within(t), "kv"); err != nil || st.State != StateHeld {
		t.Fatalf("a living process as holder: %q, %v", st.State, err)
	}
	child.Process.Kill() // and nobody waits
	l, err := s.Wait(within(t), "kv", Claimant{})
	if err != nil || l.Epoch() != 2 {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestOddProcessNames: "a) R 1 (b" in /proc/PID/stat.
func TestOddProcessNames(t *testing.T) {
	root := t.TempDir()
	c := start(t, exec.Command(os.Args[0], "odd", root))
	if word, _ := c.ask("claim kv"); word != "ok" {
		t.Fatal(word)
	}
	if stat := contents(t, fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid)); !strings.Contains(stat, "(a) R 1 (b)") {
		t.Skipf("the name was not set: %.40s", stat)
	}
	s := open(t, root)
	os.Remove(s.file("kv", liveSuffix))
	_, err := s.Claim(within(t), "kv", Claimant{})
	heldBy(t, err, c.cmd.Process.Pid)
	c.kill()
	if l := claim(t, s, "kv"); l.Epoch() != 2 {
		t.Errorf("epoch is %d", l.Epoch())
	}
}

// TestInheritedDescriptor: a process that the dead holder started has its lock
// on KEY.live. The lease is granted all the same, and the lock, once it is
// free, is the new holder's.
func TestInheritedDescriptor(t *testing.T) {
	root := t.TempDir()
	s, other := open(t, root), open(t, root)
	l := claim(t, s, "kv")
	heir := exec.Command("sleep", "1000")
	heir.ExtraFiles = append(heir.ExtraFiles, liveOf(l.claim))
	if err := heir.Start(); err != nil {
		t.Fatal(err)
	}
	defer heir.Wait()
	defer heir.Process.Kill()
	edit(t, s, "kv", func(r *record) { r.Start++ }) // the holder is dead,
	liveOf(l.claim).Close()                         // and its descriptor closed
	l2, err := other.Claim(within(t), "kv", Claimant{})
	if err != nil || l2.Epoch() != 2 || liveOf(l2.claim) != nil {
		t.Fatalf("%+v, %v", l2, err)
	}
	_, err = open(t, root).Claim(within(t), "kv", Claimant{})
	heldBy(t, err, os.Getpid())
	heir.Process.Kill()
	heir.Wait()
	_, err = open(t, root).Claim(within(t), "kv", Claimant{}) // the free lock was not its
	heldBy(t, err, os.Getpid())
	if err := other.Renew(within(t), l2); err != nil || liveOf(l2.claim) == nil {
		t.Errorf("Renew: %v", err)
	}
}

// TestReleaseBesideAnInheritedDescriptor: who comes next sees no riddle.
func TestReleaseBesideAnInheritedDescriptor(t *testing.T) {
	root := t.TempDir()
	s, other := open(t, root), open(t, root)
	l := claim(t, s, "kv")
	heir := exec.Command("sleep", "1000")
	heir.ExtraFiles = append(heir.ExtraFiles, liveOf(l.claim))
	if err := heir.Start(); err != nil {
		t.Fatal(err)
	}
	defer heir.Wait()
	defer heir.Process.Kill()
	edit(t, s, "kv", func(r *record) { r.Start++ })
	liveOf(l.claim).Close()
	l2 := claim(t, other, "kv") // beside the heir's lock
	if err := other.Release(within(t), l2); err != nil {
		t.Fatal(err)
	}
	if l3 := claim(t, open(t, root), "kv"); l3.Epoch() != 3 {
		t.Errorf("epoch is %d", l3.Epoch())
	}
}

// TestACommandKeepsTheLease: a holder that named one is dead only with it, and
// with all of its process group.
func TestACommandKeepsTheLease(t *testing.T) {
	root := t.TempDir()
	const ttl = 300 * time.Millisecond
	t.Setenv(ttlVariable, ttl.String())
	s := open(t, root, WithTTL(ttl))
	c := newClaimant(t, root)
	if word, _ := c.ask("pin kv"); word != "ok" {
		t.Fatal(word)
	}
	command := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	var child int
	fmt.Fscan(out, &child)
	if word, _ := c.ask(fmt.Sprintf("name %d", command.Process.Pid)); word != "ok" {
		t.Fatal(word)
	}
	holder := c.cmd.Process.Pid
	c.kill()
	time.Sleep(2 * ttl)
	_, err = s.Claim(within(t), "kv", Claimant{})
	if held := heldBy(t, err, holder); !strings.Contains(held.Why, "command") || held.Holder.Command != command.Process.Pid {
		t.Errorf("%v", err)
	}
	command.Process.Kill()
	command.Wait()
	_, err = s.Claim(within(t), "kv", Claimant{})
	heldBy(t, err, holder) // its child lives
	got := make(chan *Lease, 1)
	go func() {
		l, err := s.Wait(within(t), "kv", Claimant{})
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	syscall.Kill(child, syscall.SIGKILL) // init may reap it late: a zombie does not count
	if l := <-got; l == nil || l.Epoch() != 2 {
		t.Errorf("%+v", l)
	}
}
