//go:build unix

package filelease

import (
	"encoding/json"
	"errors"
	"fmt"
	"golang.org/x/sys/unix"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// long is how many times longer the heavy tests run: FILELEASE_LONG=50.
func long(n int) int {
	factor, err := strconv.Atoi(os.Getenv("FILELEASE_LONG"))
	if err != nil {
		factor = 1
	}
	return n * factor
}

// TestRacingClaimantsOneWins: all claim at once, many rounds. One wins, the
// others name it, and every winner's epoch is one above the last. In every
// second round the winner is killed instead of releasing.
func TestRacingClaimantsOneWins(t *testing.T) {
	for _, processes := range []int{8, 32} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) { race(t, processes, long(96/processes)) })
	}
}

func race(t *testing.T, processes, rounds int) {
	root := t.TempDir()
	all := make([]*claimant, processes)
	for i := range all {
		all[i] = newClaimant(t, root)
	}
	var last uint64
	for round := range rounds {
		winner := oneWinner(t, all, last+1)
		last++
		w := all[winner]
		if round%2 == 0 {
			for _, order := range []string{"verify", "renew", "release"} {
				if word, _ := w.ask(order); word != "ok" {
					t.Fatalf("round %d: %s says %s", round, order, word)
				}
			}
			continue
		}
		w.kill()
		all[winner] = newClaimant(t, root)
	}
}

// oneWinner lets all claim at once.
func oneWinner(t *testing.T, all []*claimant, epoch uint64) (winner int) {
	t.Helper()
	for _, c := range all {
		c.tell("claim kv")
	}
	winner = -1
	named := make(map[uint64]int)
	for i, c := range all {
		switch word, n := c.answer(); word {
		case "ok":
			if winner >= 0 {
				t.Fatalf("epoch %d: two winners", epoch)
			}
			if winner = i; n != epoch {
				t.Fatalf("epoch %d, want %d", n, epoch)
			}
		case "held":
			named[n]++
		default:
			t.Fatalf("epoch %d: %s", epoch, word)
		}
	}
	if winner < 0 {
		t.Fatalf("epoch %d: no winner", epoch)
	}
	if pid := all[winner].cmd.Process.Pid; named[uint64(pid)] != len(all)-1 {
		t.Fatalf("epoch %d: the losers name %v, the winner is pid %d", epoch, named, pid)
	}
	return winner
}

// TestReclaimersOfADeadHolderOneWins: 16 find the same holder dead.
func TestReclaimersOfADeadHolderOneWins(t *testing.T) {
	root := t.TempDir()
	all := make([]*claimant, 16)
	for i := range all {
		all[i] = newClaimant(t, root)
	}
	var epoch uint64
	for range long(6) {
		victim := newClaimant(t, root)
		word, n := victim.ask("claim kv")
		if word != "ok" || n != epoch+1 {
			t.Fatalf("%s %d, want ok %d", word, n, epoch+1)
		}
		victim.kill()
		winner := oneWinner(t, all, epoch+2)
		epoch += 2
		if word, _ := all[winner].ask("release"); word != "ok" {
			t.Fatal(word)
		}
	}
}

// TestKilledAtEveryStep: kill -9 between any two steps of a claim, a renewal
// and a release, after which the next claim is right: granted at once, under
// an epoch above all that were handed out, with a whole record.
func TestKilledAtEveryStep(t *testing.T) {
	for _, op := range []struct{ name, prepare, order string }{
		{"claim of a free lease", "", "claim kv"},
		{"claim of a dead holder's lease", "dead", "claim kv"},
		{"claim of a damaged record", "damaged", "claim kv"},
		{"refresh", "own", "claim kv"},
		{"renew", "own", "renew"},
		{"release", "own", "release"},
	} {
		t.Run(op.name, func(t *testing.T) {
			numSteps := uint64(1)
			for at := uint64(0); at <= numSteps; at++ { // 0: not killed, but counted
				root := t.TempDir()
				s := open(t, root, WithTTL(300*time.Millisecond))
				var last uint64
				prepared(t, s, root, op.prepare, &last)
				c := newClaimant(t, root)
				if op.prepare == "own" {
					if word, n := c.ask("claim kv"); word != "ok" || n != 1 {
						t.Fatal(word, n)
					}
					last = 1
				}
				if at == 0 {
					c.ask("count")
					if word, _ := c.ask(op.order); word != "ok" {
						t.Fatal(word)
					}
					if _, numSteps = c.ask("steps"); numSteps < 3 {
						t.Fatalf("%d steps only", numSteps)
					}
					c.kill()
					continue
				}
				c.tell(fmt.Sprintf("die %d", at))
				c.tell(op.order)
				c.cmd.Wait()
				last = max(last, recorded(t, s))
				l, err := s.Claim(within(t), "kv", Claimant{})
				if op.prepare == "damaged" && err != nil { // unless it was replaced already
					l, err = s.Wait(within(t), "kv", Claimant{})
				}
				if err != nil {
					t.Fatalf("killed at step %d: %v", at, err)
				}
				if l.Epoch() <= last || l.Epoch() > last+2 {
					t.Fatalf("killed at step %d: epoch %d after %d", at, l.Epoch(), last)
				}
				if err := s.Verify(within(t), l); err != nil {
					t.Fatalf("killed at step %d: %v", at, err)
				}
				if op.prepare == "damaged" && contents(t, s.file("kv", badSuffix)) != "{half" {
					t.Fatalf("killed at step %d: the damaged record was not kept", at)
				}
			}
			t.Logf("%d steps", numSteps)
		})
	}
}

func prepared(t *testing.T, s *Store, root, how string, last *uint64) {
	t.Helper()
	switch how {
	case "dead":
		c := newClaimant(t, root)
		if word, n := c.ask("claim kv"); word != "ok" || n != 1 {
			t.Fatal(word, n)
		}
		c.kill()
		*last = 1
	case "damaged":
		if err := os.WriteFile(s.file("kv", leaseSuffix), []byte("{half"), 0o600); err != nil {
			t.Fatal(err)
		}
		// Watched for long enough already.
		_, err := s.Claim(within(t), "kv", Claimant{})
		heldBy(t, err, 0)
		b := contents(t, s.file("kv", seenSuffix))
		var seen sighting
		if err := json.Unmarshal([]byte(b), &seen); err != nil {
			t.Fatal(err)
		}
		seen.Since = 1
		out, _ := json.Marshal(seen)
		if err := os.WriteFile(s.file("kv", seenSuffix), out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// recorded is the epoch that somebody may have been told.
func recorded(t *testing.T, s *Store) uint64 {
	t.Helper()
	f, err := s.find("kv")
	if err != nil {
		t.Fatal(err)
	}
	if f.r == nil {
		return 0
	}
	return f.epoch
}

func TestKilledHolderIsReplacedAtOnce(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for want := uint64(1); want <= 9; want += 2 {
		c := newClaimant(t, root)
		if word, n := c.ask("claim kv"); word != "ok" || n != want {
			t.Fatalf("%s %d, want ok %d", word, n, want)
		}
		_, err := s.Claim(within(t), "kv", Claimant{})
		heldBy(t, err, c.cmd.Process.Pid)
		c.kill()
		l := claim(t, s, "kv")
		if l.Epoch() != want+1 {
			t.Fatalf("epoch is %d, want %d", l.Epoch(), want+1)
		}
		if err := s.Release(within(t), l); err != nil {
			t.Fatal(err)
		}
	}
}

// TestZombieHolderIsDead: nobody has waited for the holder yet.
func TestZombieHolderIsDead(t *testing.T) {
	root := t.TempDir()
	c := newClaimant(t, root)
	if word, _ := c.ask("claim kv"); word != "ok" {
		t.Fatal(word)
	}
	c.cmd.Process.Kill()
	s := open(t, root)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		l, err := s.Claim(within(t), "kv", Claimant{})
		if err == nil {
			if l.Epoch() != 2 {
				t.Errorf("epoch is %d", l.Epoch())
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestDeletedFiles: somebody cleans the folder under a live holder.
func TestDeletedFiles(t *testing.T) {
	root := t.TempDir()
	c := newClaimant(t, root)
	pid := c.cmd.Process.Pid
	s := open(t, root)
	ctx := within(t)
	if word, _ := c.ask("claim kv"); word != "ok" {
		t.Fatal(word)
	}
	for _, suffix := range []string{lockSuffix, liveSuffix} {
		if err := os.Remove(s.file("kv", suffix)); err != nil {
			t.Fatal(err)
		}
		_, err := s.Claim(ctx, "kv", Claimant{})
		heldBy(t, err, pid)
	}
	// It learns that it can no longer prove that it lives.
	c.tell("verify")
	line, err := c.out.ReadString('\n')
	if err != nil || line[:4] != "lost" {
		t.Errorf("verify after the live file was deleted: %q, %v", line, err)
	}
	// Only the record was deleted: somebody lives, unknown who.
	c2 := newClaimant(t, root)
	if word, _ := c2.ask("claim k2"); word != "ok" {
		t.Fatal(word)
	}
	if err := os.Remove(s.file("k2", leaseSuffix)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Claim(ctx, "k2", Claimant{})
	heldBy(t, err, 0)
}

// TestUnlinkedLockFile: the lock file is deleted while one is inside the
// critical section and another waits for it. The waiter must not get in on the
// old file when a third is inside on the new one.
func TestUnlinkedLockFile(t *testing.T) {
	s := open(t, t.TempDir())
	path := s.file("kv", lockSuffix)
	first, err := tryAcquire(path)
	if err != nil {
		t.Fatal(err)
	}
	waiter, err := openLock(path) // has the old file open
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	third, err := tryAcquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(third)
	unlock(first)
	if locked, err := tryLock(waiter); err != nil || !locked {
		t.Fatalf("the old file: %v, %v", locked, err)
	}
	if same, err := leadsTo(path, waiter); err != nil || same {
		t.Error("the old file is taken for the lock")
	}
	if _, err := tryAcquire(path); err != ErrBusy {
		t.Errorf("the new file: %v", err)
	}
}

// stopOutside stops a holder that renews, at a moment at which it is not in the
// critical section: in there it would keep everybody out.
func stopOutside(t *testing.T, holder *claimant, lock string) {
	t.Helper()
	for range 1000 {
		holder.cmd.Process.Signal(unix.SIGSTOP)
		time.Sleep(10 * time.Millisecond) // until it has stopped
		f, err := tryAcquire(lock)
		if err == nil {
			unlock(f)
			return
		}
		holder.cmd.Process.Signal(unix.SIGCONT)
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the holder is always in the critical section")
}

// TestStoppedHolderIsTakenByTimeAndLearnsIt: SIGSTOP for longer than the TTL,
// then SIGCONT. A pinned one is not taken.
func TestStoppedHolderIsTakenByTimeAndLearnsIt(t *testing.T) {
	const ttl = 300 * time.Millisecond
	t.Setenv(ttlVariable, ttl.String())
	for _, c := range []struct {
		name, order string
		taken       bool
	}{{"taken", "claim kv", true}, {"nobody came", "claim kv", false}, {"pinned", "pin kv", false}} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			s := open(t, root, WithTTL(ttl))
			holder := newClaimant(t, root)
			ask := func() {
				if word, _ := holder.ask(c.order); word != "ok" {
					t.Fatal(word)
				}
				holder.ask("keep")
			}
			ask()
			time.Sleep(2 * ttl)
			l, err := s.Claim(within(t), "kv", Claimant{}) // it is kept
			for tries := 0; err == nil && tries < 20; tries++ {
				// It had no processor to renew in time.
				if err := s.Release(within(t), l); err != nil {
					t.Fatal(err)
				}
				ask()
				time.Sleep(2 * ttl)
				l, err = s.Claim(within(t), "kv", Claimant{})
			}
			pid := holder.cmd.Process.Pid
			heldBy(t, err, pid)
			stopOutside(t, holder, s.file("kv", lockSuffix))
			if c.name != "taken" {
				time.Sleep(2 * ttl)
			}
			if c.taken {
				was, err := s.LastEpoch("kv")
				if err != nil {
					t.Fatal(err)
				}
				l, err := s.Wait(within(t), "kv", Claimant{})
				if err != nil || l.Epoch() != was+1 {
					t.Fatalf("%+v after %d, %v", l, was, err)
				}
				l.Keep(t.Context())
			}
			before := contents(t, s.file("kv", leaseSuffix))
			if c.order == "pin kv" {
				_, err := s.Claim(within(t), "kv", Claimant{})
				heldBy(t, err, pid)
			}
			holder.cmd.Process.Signal(unix.SIGCONT)
			word, n := holder.ask("verify")
			switch {
			case c.order == "pin kv":
				if word != "ok" {
					t.Errorf("a pinned holder that was stopped: %s", word)
				}
				return
			case c.taken:
				if word != "lost" && (word != "held" || n != uint64(os.Getpid())) {
					t.Errorf("verify says %s %d", word, n)
				}
			case word != "lost":
				t.Errorf("verify says %s", word)
			}
			if word, _ := holder.ask("done"); word != "lost" && word != "held" {
				t.Errorf("done says %s", word)
			}
			if word, _ := holder.ask("renew"); word == "ok" {
				t.Error("it renewed what it had lost")
			}
			if !c.taken && contents(t, s.file("kv", leaseSuffix)) != before {
				t.Error("it wrote after its loss")
			}
		})
	}
}

// TestCleanedFolder: everything is deleted under a holder, and it learns it.
func TestCleanedFolder(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	ctx := within(t)
	l := claim(t, s, "kv")
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Renew(ctx, l); err == nil || !strings.Contains(err.Error(), "was deleted") || !errors.Is(err, ErrLost) {
			t.Errorf("Renew: %v", err)
		}
	}
	<-l.Done()
	if _, err := s.Claim(ctx, "kv", Claimant{}); err == nil || !strings.Contains(err.Error(), "epochs begin again") {
		t.Errorf("Claim: %v", err)
	}
	if err := s.Release(ctx, l); err != nil {
		t.Errorf("Release: %v", err)
	}
	s2 := open(t, root) // makes it anew
	claim(t, s2, "kv")
	if err := s.Verify(ctx, l); err == nil {
		t.Error("the old lease came back")
	}
}

// TestALockFileThatBelongsToAnother: a clear error.
func TestALockFileThatIsNoFile(t *testing.T) {
	s := open(t, t.TempDir())
	if err := os.Symlink("/dev/null", s.file("kv", lockSuffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(within(t), "kv", Claimant{}); err == nil || !strings.Contains(err.Error(), "kv.lock") {
		t.Errorf("got %v", err)
	}
}

// TestChildrenDoNotInheritTheLease: a child outlives the holder, which is then
// replaced at once.
func TestChildrenDoNotInheritTheLease(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	l := claim(t, s, "kv")
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	if files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", child.Process.Pid)); err == nil {
		for _, f := range files {
			if to, _ := os.Readlink(f); strings.HasPrefix(to, s.dir) {
				t.Errorf("the child has %s open", to)
			}
		}
	}
	liveOf(l.claim).Close() // as the end of the process would; without an unlock
	if l := claim(t, open(t, root), "kv"); l.Epoch() != 2 {
		t.Errorf("epoch is %d", l.Epoch())
	}
}
