//go:build unix

package filelease

import (
	"os"
	"testing"
	"time"
)

// TestRace: 16 processes claim at once, 20 rounds. One wins, the others name
// it, and every winner has a higher epoch than the one before. In every second
// round the winner is killed instead of releasing, so that the next round is
// one of racing reclaimers of a dead holder.
func TestRace(t *testing.T) {
	root := t.TempDir()
	const processes, rounds = 16, 20
	all := make([]*claimant, processes)
	for i := range all {
		all[i] = newClaimant(t, root)
	}
	var last uint64
	for round := range rounds {
		for _, c := range all {
			c.tell("claim kv")
		}
		winner := -1
		named := make(map[uint64]int)
		for i, c := range all {
			switch word, n := c.answer(); word {
			case "ok":
				if winner >= 0 {
					t.Fatalf("round %d: two winners", round)
				}
				winner = i
				if n != last+1 {
					t.Fatalf("round %d: epoch %d after %d", round, n, last)
				}
				last = n
			case "held":
				named[n]++
			default:
				t.Fatalf("round %d: %s", round, word)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: no winner", round)
		}
		w := all[winner]
		if named[uint64(w.cmd.Process.Pid)] != processes-1 {
			t.Fatalf("round %d: the losers name %v, the winner is pid %d", round, named, w.cmd.Process.Pid)
		}
		if round%2 == 0 {
			if word, _ := w.ask("verify"); word != "ok" {
				t.Fatalf("round %d: verify says %s", round, word)
			}
			if word, _ := w.ask("release"); word != "ok" {
				t.Fatalf("round %d: release says %s", round, word)
			}
			continue
		}
		w.kill()
		all[winner] = newClaimant(t, root)
	}
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
