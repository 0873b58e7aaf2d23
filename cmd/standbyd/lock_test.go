package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/filelease"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/programs"
)

// init makes the test binary standbyd itself, for a lock that can be killed.
func init() {
	if os.Getenv("LOCK_TEST_PROGRAM") != "" && os.Args[0] != stageName && os.Args[0] != wardenName {
		os.Unsetenv("LOCK_TEST_PROGRAM")
		main()
	}
}

func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "LOCK_TEST_PROGRAM=1")
	return cmd
}

// lockRun runs `standbyd lock --root ROOT ARGS`.
func lockRun(root string, args ...string) (code int, stdout, stderr string) {
	cmd := program(append([]string{"lock", "--root", root}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// TestLockOfAMistypedRoot makes no folder, in which nobody would be in the way.
func TestLockOfAMistypedRoot(t *testing.T) {
	root := filepath.Join(t.TempDir(), "typo", "x")
	code, _, errs := lockRun(root, "k", "--", "true")
	if code != 125 || !strings.Contains(errs, "use --root "+root+": there is no such folder") {
		t.Errorf("code %d, %s", code, errs)
	}
	if _, err := os.Lstat(filepath.Dir(root)); err == nil {
		t.Error("it was made")
	}
}

// background is a lock whose command has printed its first line.
type background struct {
	*exec.Cmd
	first  string
	stderr *programs.Output
}

func lockStart(t *testing.T, root string, args ...string) *background {
	t.Helper()
	b := &background{Cmd: program(append([]string{"lock", "--root", root}, args...)...), stderr: &programs.Output{}}
	b.Stderr = b.stderr
	out, err := b.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Process.Kill(); b.Wait() })
	if b.first, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the command said nothing: %v, %s", err, b.stderr)
	}
	b.first = strings.TrimSpace(b.first)
	return b
}

func TestLockPassesTheExitCode(t *testing.T) {
	root := t.TempDir()
	script := filepath.Join(root, "script")
	if err := os.WriteFile(script, []byte("echo token $STANDBYD_TOKEN $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code   int
		stdout string
		stderr string
		args   []string
	}{
		{0, "token 1\n", "", []string{"k", "--", "sh", "-c", "echo token $STANDBYD_TOKEN"}},
		{7, "", "", []string{"k", "--", "sh", "-c", "exit 7"}},
		{0, "token 3 arg\n", "", []string{"k", "--", script, "arg"}}, // without #!
		{137, "", "", []string{"k", "--", "sh", "-c", "kill -9 $$"}},
		{143, "", "", []string{"k", "--", "sh", "-c", "kill -15 $$"}},
		{2, "", "", []string{"k", "--", "sh", "-c", "exit 2"}},
		{127, "", "standbyd: run no-such-command", []string{"k", "--", "no-such-command"}},
		{126, "", "permission denied", []string{"k", "--", "/etc/passwd"}},
		{125, "", "CMD is missing", []string{"k"}},
		{125, "", "KEY is missing", nil},
		{125, "", "put -- before CMD: standbyd lock k -- true", []string{"k", "true"}},
		{125, "", "one argument too many", []string{"k", "x", "--", "true"}},
		{125, "", "unknown flag", []string{"--bogus", "k", "--", "true"}},
		{125, "", "exclude each other", []string{"--wait", "1s", "--no-wait", "k", "--", "true"}},
		{125, "", "must be above 0", []string{"--wait", "0s", "k", "--", "true"}},
		{125, "", "ttl is 0s", []string{"--ttl", "0s", "k", "--", "true"}},
		{125, "", "bad key", []string{"a/b", "--", "true"}},
	} {
		code, stdout, stderr := lockRun(root, c.args...)
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("lock %q: exit %d, %q, %q; want %d, %q, %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
}

func TestLockHeldByAnother(t *testing.T) {
	root := t.TempDir()
	holder := lockStart(t, root, "k", "--", "sh", "-c", "echo $$; exec sleep 1000")
	who := fmt.Sprintf("pid %d", holder.Process.Pid)
	for _, how := range [][]string{{"--no-wait"}, {"--wait", "200ms"}} {
		code, _, stderr := lockRun(root, append(how, "k", "--", "true")...)
		if code != exitTooLong || !strings.Contains(stderr, who) || !strings.Contains(stderr, "exec sleep 1000") {
			t.Errorf("%v: exit %d, %q", how, code, stderr)
		}
	}
	out, err := program("locks", "--root", root, "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var line lockJSON
	if err := json.Unmarshal(out, &line); err != nil || line.Key != "k" || line.State != "held" || line.Token != "1" ||
		line.Holder == nil || line.Holder.PID != holder.Process.Pid || strconv.Itoa(line.Holder.CommandPID) != holder.first || !line.Holder.Pinned {
		t.Errorf("locks says %s, %v", out, err)
	}
	if out, err := program("locks", "--root", root).Output(); err != nil || !strings.Contains(string(out), who) {
		t.Errorf("locks says %s, %v", out, err)
	}
	// A waiter gets it when the holder ends; signals are passed on.
	waiter := program("lock", "--root", root, "k", "--", "sh", "-c", "exit $STANDBYD_TOKEN")
	if err := waiter.Start(); err != nil {
		t.Fatal(err)
	}
	if err := holder.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	holder.Wait()
	if code := holder.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit %d of a command that SIGTERM ended", code)
	}
	waiter.Wait()
	if code := waiter.ProcessState.ExitCode(); code != 2 {
		t.Errorf("the waiter had token %d", code)
	}
	if out, err := program("locks", "--root", root).Output(); err != nil || !strings.Contains(string(out), "free") {
		t.Errorf("locks says %s, %v", out, err)
	}
}

func TestLockWaitIsInterruptible(t *testing.T) {
	root := t.TempDir()
	lockStart(t, root, "k", "--", "sh", "-c", "echo up; exec sleep 1000")
	waiter := program("lock", "--root", root, "k", "--", "true")
	if err := waiter.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	waiter.Process.Signal(syscall.SIGTERM)
	waiter.Wait()
	if code := waiter.ProcessState.ExitCode(); code != 143 && code != -1 { // -1: before it was ready for signals
		t.Errorf("exit %d", code)
	}
}

// alive counts the living processes of a group.
func groupLives(t *testing.T, first string) bool {
	t.Helper()
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return !proc.GroupGone(pid)
}

// TestLockKilledEndsTheCommand: and all of its group, before its successor begins.
func TestLockKilledEndsTheCommand(t *testing.T) {
	root := t.TempDir()
	for range 3 {
		holder := lockStart(t, root, "k", "--", "sh", "-c", "sleep 1000 & echo $$; trap '' TERM; sleep 1000; echo never")
		holder.Process.Kill()
		probe := fmt.Sprintf("kill -0 -%s 2>/dev/null && grep -l 'State:.[^Z]' $(for p in $(pgrep -g %s); do echo /proc/$p/status; done) /dev/null; exit 0", holder.first, holder.first)
		code, out, stderr := lockRun(root, "--wait", "60s", "k", "--", "sh", "-c", probe)
		if code != 0 || runtime.GOOS == "linux" && strings.TrimSpace(out) != "" {
			t.Errorf("exit %d, beside its successor lived %q, %s", code, out, stderr)
		}
		if groupLives(t, holder.first) {
			t.Error("the group lives on")
		}
	}
}

// TestLockThatIsStoppedIsNotTaken: its command runs on, so nobody else may.
func TestLockThatIsStoppedIsNotTaken(t *testing.T) {
	root := t.TempDir()
	holder := lockStart(t, root, "--ttl", "300ms", "k", "--", "sh", "-c", "echo $$; exec sleep 1000")
	holder.Process.Signal(syscall.SIGSTOP)
	code, _, _ := lockRun(root, "--ttl", "300ms", "--wait", "1500ms", "k", "--", "true")
	if code != exitTooLong {
		t.Errorf("exit %d", code)
	}
	holder.Process.Signal(syscall.SIGCONT)
	holder.Process.Signal(syscall.SIGTERM)
	holder.Wait()
	if code := holder.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit %d: %s", code, holder.stderr)
	}
}

// TestLockThatIsBeingChangedForEver: its holder was stopped while it renewed
// the lease, so that the lease cannot even be read.
func TestLockThatIsBeingChangedForEver(t *testing.T) {
	root := t.TempDir()
	if code, _, stderr := lockRun(root, "k", "--", "true"); code != 0 {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	inside, err := os.OpenFile(filepath.Join(root, "leases", "k.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	if err := syscall.Flock(int(inside.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	for _, limit := range [][]string{{"--wait", "300ms"}, {"--no-wait"}} {
		code, _, stderr := lockRun(root, append(limit, "k", "--", "true")...)
		if code != exitTooLong || !strings.Contains(stderr, "waited too long") || !strings.Contains(stderr, "fuser "+inside.Name()) {
			t.Errorf("%v: exit %d, %s", limit, code, stderr)
		}
	}
}

// TestLockLostEndsTheCommand: somebody deletes its record.
func TestLockLostEndsTheCommand(t *testing.T) {
	root := t.TempDir()
	holder := lockStart(t, root, "--ttl", "600ms", "k", "--", "sh", "-c", "sleep 1000 & echo $$; trap '' TERM; while :; do sleep 1000; done")
	ended := make(chan struct{})
	go func() { holder.Wait(); close(ended) }()
	for tick := time.NewTicker(20 * time.Millisecond); ; { // a renewal at this moment would write it anew
		os.Remove(filepath.Join(root, "leases", "k.lease.json"))
		select {
		case <-tick.C:
			continue
		case <-ended:
		case <-time.After(patience):
			t.Fatal("it goes on")
		}
		break
	}
	if code := holder.ProcessState.ExitCode(); code != exitLost || !strings.Contains(holder.stderr.String(), "lease lost") {
		t.Errorf("exit %d, %s", code, holder.stderr)
	}
	if groupLives(t, holder.first) {
		t.Error("the group lives on")
	}
}

// TestLockLeavesNothingOfTheGroup: what CMD left in the background ends before
// the lease is free.
func TestLockLeavesNothingOfTheGroup(t *testing.T) {
	code, out, stderr := lockRun(t.TempDir(), "k", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $$")
	if code != 0 || groupLives(t, strings.TrimSpace(out)) {
		t.Errorf("exit %d, %q, %s", code, out, stderr)
	}
}

// TestLockIsForOneAtATime: many run the same job.
func TestLockIsForOneAtATime(t *testing.T) {
	root := t.TempDir()
	const jobs = 8
	var all []*exec.Cmd
	for range jobs {
		cmd := program("lock", "--root", root, "k", "--", "sh", "-c",
			`mkdir "$0/inside" || exit 9; echo $STANDBYD_TOKEN >>"$0/tokens"; rmdir "$0/inside"`, root)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(root, "tokens"))
	if err != nil || string(b) != "1\n2\n3\n4\n5\n6\n7\n8\n" {
		t.Errorf("tokens are %q, %v", b, err)
	}
}

func TestLockCommandDoesNotHaveTheLeasesFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	root := t.TempDir()
	code, out, stderr := lockRun(root, "k", "--", "sh", "-c", "readlink /proc/$$/fd/*")
	if out == "" || strings.Contains(out, root) {
		t.Errorf("exit %d, it has %s, %s", code, out, stderr)
	}
}

func TestLocksOfAFolderThatIsNotThere(t *testing.T) {
	root := filepath.Join(t.TempDir(), "none")
	out, err := program("locks", "--root", root).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "use --root "+root+": there is no such folder") {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Error("it was made")
	}
	there := filepath.Dir(root)
	if out, err := program("locks", "--root", there).CombinedOutput(); err != nil || !strings.Contains(string(out), "no leases in "+there) {
		t.Errorf("a folder without leases: %s, %v", out, err)
	}
}

func TestLocksShowsADamagedRecord(t *testing.T) {
	root := t.TempDir()
	s, err := filelease.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NextEpoch(context.Background(), "role.kv"); err != nil { // a counter only
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "leases", "k.lease.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := program("locks", "--root", root).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "an unknown process") || !strings.Contains(string(out), "is unreadable") || strings.Contains(string(out), "role.kv") {
		t.Errorf("%s, %v", out, err)
	}
}
