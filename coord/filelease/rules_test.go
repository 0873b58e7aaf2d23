package filelease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestOptionsAreCheckedAgainstEachOther(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []Option
		want string // in the error; empty: none
	}{
		{"defaults", nil, ""},
		{"ttl alone", []Option{WithTTL(time.Second)}, ""},
		{"exactly three", []Option{WithTTL(3 * time.Second), WithRenewInterval(time.Second)}, ""},
		{"too seldom", []Option{WithTTL(3 * time.Second), WithRenewInterval(1001 * time.Millisecond)}, "1.001s and the ttl 3s"},
		{"renew above the default ttl's third", []Option{WithRenewInterval(6 * time.Second)}, "6s and the ttl 15s"},
		{"ttl of nothing", []Option{WithTTL(0)}, "ttl is 0s"},
		{"negative ttl", []Option{WithTTL(-1)}, "ttl is -1ns"},
		{"negative renew", []Option{WithRenewInterval(-1)}, "renew interval is -1ns"},
		{"ttl without a third", []Option{WithTTL(2)}, "renew interval is 0s"},
		{"no clock", []Option{WithClock(nil)}, "clock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(t.TempDir(), c.opts...)
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if DefaultTTL != 15*time.Second || DefaultRenewInterval != 5*time.Second {
		t.Error("the defaults are others")
	}
}

func TestSameRunAndBlockIsRefreshed(t *testing.T) {
	root := t.TempDir()
	clock := newClock()
	s, again := open(t, root, WithClock(clock)), open(t, root, WithClock(clock))
	ctx := within(t)
	c := Claimant{Run: "run-1", Block: "a"}
	l, err := s.Claim(ctx, "kv", c)
	if err != nil {
		t.Fatal(err)
	}
	clock.pass(DefaultTTL - 1)
	l2, err := again.Claim(ctx, "kv", c) // another Store of the same process
	if err != nil || l2.Epoch() != l.Epoch() || l2.claim != l.claim {
		t.Fatalf("got %+v, %v, want the same epoch and claim", l2, err)
	}
	clock.pass(DefaultTTL - 1)
	other := open(t, root, WithClock(clock))
	_, err = other.Claim(ctx, "kv", Claimant{Run: "run-2"})
	heldBy(t, err, os.Getpid()) // refreshed, so not expired
	_, err = other.Claim(ctx, "kv", Claimant{Run: "run-1", Block: "b"})
	if held := heldBy(t, err, os.Getpid()); held.Holder.Block != "a" || held.Holder.Run != "run-1" {
		t.Errorf("another block: %+v", held.Holder)
	}
	// One Release frees it for all, whoever else of the process has it.
	if err := s.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
	if err := again.Verify(ctx, l2); !errors.Is(err, ErrLost) {
		t.Errorf("Verify of the other handle: %v", err)
	}
	if l, err := other.Claim(ctx, "kv", Claimant{}); err != nil || l.Epoch() != 2 {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestOlderRecordsMatchByWhatTheyHave: an empty claim id or block matches.
func TestOlderRecordsMatchByWhatTheyHave(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := within(t)
	c := Claimant{Run: "run-1", Block: "a"}
	l, err := s.Claim(ctx, "kv", c)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, s, "kv", func(r *record) { r.Claim, r.Block = "", nil })
	if err := s.Verify(ctx, l); err != nil {
		t.Errorf("Verify: %v", err)
	}
	l2, err := open(t, s.dir+"/..").Claim(ctx, "kv", c)
	if err != nil || l2.Epoch() != 1 {
		t.Errorf("%+v, %v, want the same epoch", l2, err)
	}
}

func TestSameRunNameOfAnotherProcessIsHeld(t *testing.T) {
	s := open(t, t.TempDir())
	l := claim(t, s, "kv")
	ppid := os.Getppid()
	edit(t, s, "kv", func(r *record) { r.Run, r.PID, r.Start = "backup", ppid, 0 })
	_, err := open(t, s.dir+"/..").Claim(within(t), "kv", Claimant{Run: "backup"})
	if held := heldBy(t, err, ppid); !strings.Contains(held.Why, "another process") {
		t.Errorf("it does not say why: %v", err)
	}
	_ = l
}

func TestHeldErrorSaysWho(t *testing.T) {
	clock := newClock()
	root := t.TempDir()
	s := open(t, root, WithClock(clock))
	ctx := within(t)
	if _, err := s.Claim(ctx, "kv", Claimant{Run: "r", Block: "b", Label: "backup", Version: "1.2", SessionHint: "tty1"}); err != nil {
		t.Fatal(err)
	}
	clock.pass(3 * time.Second)
	_, err := open(t, root, WithClock(clock)).Claim(ctx, "kv", Claimant{})
	held := heldBy(t, err, os.Getpid())
	host, _ := os.Hostname()
	want := Holder{
		PID: os.Getpid(), Host: host, Run: "r", Block: "b", Label: "backup", Version: "1.2", SessionHint: "tty1", Epoch: 1,
		Since: time.Unix(1_700_000_000, 0).UTC(), Renewed: time.Unix(1_700_000_000, 0).UTC(), TTL: DefaultTTL, ExpiresIn: 12 * time.Second,
	}
	if held.Holder != want {
		t.Errorf("holder is\n%+v, want\n%+v", held.Holder, want)
	}
	text := fmt.Sprintf(`lease "kv" is held by backup, pid %d on %s, since 2023-11-14T22:13:20Z, expires in 12s unless renewed`, os.Getpid(), host)
	if err.Error() != text {
		t.Errorf("error is\n%s, want\n%s", err, text)
	}
}

// TestExpiredIsGrantedUnderANewEpoch: and the old holder overwrites nothing.
func TestExpiredIsGrantedUnderANewEpoch(t *testing.T) {
	clock := newClock()
	root := t.TempDir()
	a, b := open(t, root, WithClock(clock)), open(t, root, WithClock(clock))
	ctx := within(t)
	l := claim(t, a, "kv")
	clock.pass(DefaultTTL - 1)
	_, err := b.Claim(ctx, "kv", Claimant{})
	heldBy(t, err, os.Getpid())
	if h, err := b.LiveHolderOtherThan(ctx, "kv", "me"); err != nil || h == nil {
		t.Errorf("just before the end: %+v, %v", h, err)
	}
	clock.pass(1)
	if h, err := b.LiveHolderOtherThan(ctx, "kv", "me"); err != nil || h != nil {
		t.Errorf("at the end: %+v, %v", h, err)
	}
	if st, err := b.Inspect(ctx, "kv"); err != nil || st.State != StateExpired || st.Holder == nil {
		t.Errorf("status %+v, %v", st, err)
	}
	l2 := claim(t, b, "kv")
	if l2.Epoch() != 2 {
		t.Errorf("epoch is %d", l2.Epoch())
	}
	before := contents(t, b.file("kv", leaseSuffix))
	heldBy(t, a.Verify(ctx, l), os.Getpid())
	heldBy(t, a.Renew(ctx, l), os.Getpid())
	<-l.Done()
	heldBy(t, l.Err(), os.Getpid())
	if err := a.Release(ctx, l); err != nil {
		t.Error(err)
	}
	if after := contents(t, b.file("kv", leaseSuffix)); after != before {
		t.Errorf("the old holder changed the record:\n%s", after)
	}
	if err := b.Verify(ctx, l2); err != nil {
		t.Error(err)
	}
	// It did without the lock of KEY.live, which the old holder had; now it has it.
	if liveOf(l2.claim) != nil {
		t.Fatal("two locks on one file")
	}
	if err := b.Renew(ctx, l2); err != nil || liveOf(l2.claim) == nil {
		t.Errorf("Renew: %v; has the lock: %v", err, liveOf(l2.claim) != nil)
	}
	f, err := b.find("kv")
	if err != nil || f.r.Live != fileNumber(liveOf(l2.claim)) {
		t.Errorf("record has live %d, %v", f.r.Live, err)
	}
}

func TestVerifyFindsTheLossAfterTheTTLThoughNobodyTookIt(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), WithClock(clock))
	ctx := within(t)
	l := claim(t, s, "kv")
	clock.pass(DefaultTTL - 1)
	if err := s.Verify(ctx, l); err != nil {
		t.Error(err)
	}
	clock.pass(1)
	for _, do := range []func(context.Context, *Lease) error{s.Verify, s.Renew} {
		if err := do(ctx, l); !errors.Is(err, ErrLost) {
			t.Errorf("got %v", err)
		}
	}
	<-l.Done()
	// The same run may have it again: nobody had it in between.
	l2 := claim(t, s, "kv")
	if l2 == l || l2.Epoch() != 1 || s.Verify(ctx, l2) != nil || s.Verify(ctx, l) == nil {
		t.Errorf("%+v", l2)
	}
	if err := s.Release(ctx, l); err != nil { // late, and not of the new one
		t.Error(err)
	}
	if err := s.Verify(ctx, l2); err != nil {
		t.Error(err)
	}
}

func TestPinnedIsNeverTakenByTimeOnItsKernel(t *testing.T) {
	clock := newClock()
	root := t.TempDir()
	a, b := open(t, root, WithClock(clock)), open(t, root, WithClock(clock))
	ctx := within(t)
	l, err := a.Claim(ctx, "kv", Claimant{Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		clock.pass(10 * DefaultTTL)
		_, err := b.Claim(ctx, "kv", Claimant{})
		if held := heldBy(t, err, os.Getpid()); !held.Holder.Pinned || held.Holder.ExpiresIn != 0 {
			t.Errorf("%+v", held.Holder)
		}
	}
	if err := a.Verify(ctx, l); err != nil {
		t.Error(err)
	}
	// Neither when its record is damaged.
	if err := os.WriteFile(a.file("kv", leaseSuffix), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := b.Claim(ctx, "kv", Claimant{})
		heldBy(t, err, 0)
		clock.pass(10 * DefaultTTL)
	}
	letGo(l.claim) // as its death would
	if l, err := b.Claim(ctx, "kv", Claimant{}); err != nil || l.Epoch() != 2 {
		t.Errorf("after its death: %+v, %v", l, err)
	}
}

// TestUnreadableCountsAsHeldUntilItWasWatchedForATTL: and is kept as KEY.lease.json.bad.
func TestUnreadableCountsAsHeldUntilItWasWatchedForATTL(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "half": `{"version":1,"key":"kv","ep`, "null": "null", "nothing in it": "{}", "garbage": "\x00\xff garbage",
		"newer": `{"version":2,"key":"kv","epoch":7}`, "newer, other types": `{"version":2,"key":["kv"],"epoch":7}`,
		"of another key": `{"version":1,"key":"other","epoch":7}`, "no epoch": `{"version":1,"key":"kv"}`,
		"bad ttl": `{"version":1,"key":"kv","epoch":7,"ttl":"-1s"}`, "a number as pid": `{"version":1,"key":"kv","epoch":7,"pid":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			s := open(t, t.TempDir(), WithClock(clock))
			ctx := within(t)
			path := s.file("kv", leaseSuffix)
			put := func(text string) {
				t.Helper()
				if err := replaceFile(path, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			put(text)
			for range 2 {
				_, err := s.Claim(ctx, "kv", Claimant{})
				held := heldBy(t, err, 0)
				if !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), path) || held.Holder.ExpiresIn != DefaultTTL {
					t.Fatalf("got %v, %+v", err, held.Holder)
				}
				h, err := s.LiveHolderOtherThan(ctx, "kv", "me")
				if err != nil || h == nil || h.PID != 0 {
					t.Fatalf("LiveHolderOtherThan: %+v, %v", h, err)
				}
				clock.pass(DefaultTTL - 1)
				_, err = s.Claim(ctx, "kv", Claimant{})
				heldBy(t, err, 0)
				put(text) // somebody rewrites it: watching begins anew
			}
			_, err := s.Claim(ctx, "kv", Claimant{})
			heldBy(t, err, 0)
			if got := contents(t, path); got != text {
				t.Fatalf("it was changed to %q", got)
			}
			clock.pass(DefaultTTL)
			l, err := s.Claim(ctx, "kv", Claimant{})
			if err != nil {
				t.Fatal(err)
			}
			if got := contents(t, s.file("kv", badSuffix)); got != text {
				t.Errorf(".bad has %q", got)
			}
			if want := uint64(1); strings.Contains(text, `"epoch":7`) && l.Epoch() != 8 && name != "bad ttl" || l.Epoch() < want {
				t.Errorf("epoch is %d", l.Epoch())
			}
		})
	}
}

// TestHolderOfAnUnreadableRecord: it neither renews nor loses what it cannot read.
func TestHolderOfAnUnreadableRecord(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := within(t)
	l := claim(t, s, "kv")
	path := s.file("kv", leaseSuffix)
	good := contents(t, path)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, do := range []func(context.Context, *Lease) error{s.Verify, s.Renew} {
		if err := do(ctx, l); !errors.Is(err, ErrUnreadable) || errors.Is(err, ErrLost) {
			t.Errorf("got %v", err)
		}
	}
	if contents(t, path) != "{" {
		t.Error("it was overwritten")
	}
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(ctx, l); err != nil {
		t.Error(err)
	}
}

// TestHoldersThatCannotBeSeenAreWatched: another machine, a missing field, a
// clock that is not ours. Wall time has no say.
func TestHoldersThatCannotBeSeenAreWatched(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *Store, r *record)
	}{
		{"of another machine on a shared folder", func(s *Store, r *record) { r.Boot++; r.Host = "other"; r.Machine = "m2" }},
		{"of a machine with our name and machine id, shared folder", func(s *Store, r *record) { r.Boot++; s.network = true; s.machine, r.Machine = "m", "m" }},
		{"without a boot", func(s *Store, r *record) { r.Boot = 0 }},
		{"without a stamp", func(s *Store, r *record) { r.Live = 0; r.Boottime = 0 }},
		{"without a ttl", func(s *Store, r *record) { r.Live = 0; r.TTL = 0 }},
		{"stamped in the future", func(s *Store, r *record) { r.Live = 0; r.Boottime += int64(time.Hour) }},
		{"of another time namespace", func(s *Store, r *record) { r.Live = 0; r.TimeNS++ }},
		{"pinned, of another machine", func(s *Store, r *record) { r.Boot++; r.Machine = "m2"; r.Pinned = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			clock := newClock()
			s, holder := open(t, root, WithClock(clock)), open(t, root, WithClock(clock))
			ctx := within(t)
			l := claim(t, holder, "kv")
			edit(t, s, "kv", func(r *record) { c.change(s, r) })
			letGo(l.claim) // as the end of the process would
			watch := func(d time.Duration) {
				t.Helper()
				_, err := s.Claim(ctx, "kv", Claimant{Run: "other"})
				heldBy(t, err, os.Getpid())
				clock.pass(d)
			}
			clock.wall.Add(int64(time.Hour / time.Second))
			watch(DefaultTTL - 1)
			clock.wall.Add(-2 * int64(time.Hour/time.Second))
			watch(0)
			edit(t, s, "kv", func(r *record) { r.Renewals++ }) // it renews
			watch(DefaultTTL - 1)
			watch(1)
			l2, err := s.Claim(ctx, "kv", Claimant{Run: "other"})
			if err != nil || l2.Epoch() != 2 {
				t.Fatalf("%+v, %v", l2, err)
			}
		})
	}
}

func TestProvablyDead(t *testing.T) {
	for _, c := range []struct {
		name   string
		linux  bool // needs start times, boots, namespaces
		change func(s *Store, r *record)
		state  State
	}{
		{"of this kernel, its lock is free", false, func(s *Store, r *record) {}, StateDead},
		{"pinned, of this kernel, its lock is free", false, func(s *Store, r *record) { r.Pinned = true }, StateDead},
		{"of another pid namespace of this kernel, its lock is free", true, func(s *Store, r *record) { r.PIDNS++; r.PID = 1 }, StateDead},
		{"of an earlier boot of this machine", true, func(s *Store, r *record) { r.Boot++; s.machine, r.Machine = "m", "m" }, StateDead},
		{"of an earlier boot of an unknown machine", true, func(s *Store, r *record) { r.Boot++; r.Machine = "" }, StateHeld},
		{"another lock file, the process lives", false, func(s *Store, r *record) { r.Live++ }, StateHeld},
		{"another lock file, another start time", true, func(s *Store, r *record) { r.Live++; r.Start++ }, StateDead},
		{"another lock file, no start time", true, func(s *Store, r *record) { r.Live++; r.Start = 0 }, StateHeld},
		{"another lock file, another pid namespace", true, func(s *Store, r *record) { r.Live++; r.PIDNS++; r.Start++ }, StateHeld},
		{"another lock file, another time namespace", true, func(s *Store, r *record) { r.Live++; r.TimeNS++; r.Start++ }, StateHeld},
		{"another lock file, another host", true, func(s *Store, r *record) { r.Live++; r.Host = "other"; r.Start++ }, StateHeld},
		{"another lock file, no pid", false, func(s *Store, r *record) { r.Live++; r.PID = 0 }, StateHeld},
		{"another lock file, no pid namespace", true, func(s *Store, r *record) { r.Live++; r.PIDNS = 0; r.Start++ }, StateHeld},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			s := open(t, root)
			if c.linux && s.self.Start == 0 {
				t.Skip("this system does not tell enough about processes")
			}
			l := claim(t, open(t, root), "kv")
			letGo(l.claim) // as the end of the process would
			edit(t, s, "kv", func(r *record) { c.change(s, r) })
			st, err := s.Inspect(within(t), "kv")
			if err != nil || st.State != c.state {
				t.Fatalf("state is %q, %v (%v), want %q", st.State, err, st.Err, c.state)
			}
			l2, err := s.Claim(within(t), "kv", Claimant{Run: "other"})
			if c.state == StateHeld {
				var held *HeldError
				if !errors.As(err, &held) {
					t.Errorf("Claim: %v", err)
				}
			} else if err != nil || l2.Epoch() != 2 {
				t.Errorf("Claim: %+v, %v", l2, err)
			}
		})
	}
}

// TestAWatchIsRememberedForTheNextProcess: a job that tries once and ends.
func TestAWatchIsRememberedForTheNextProcess(t *testing.T) {
	root := t.TempDir()
	ttl := 300 * time.Millisecond
	first := open(t, root, WithTTL(ttl))
	if first.boot == 0 {
		t.Skip("this system does not name its boots")
	}
	if err := os.WriteFile(first.file("kv", leaseSuffix), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := first.Claim(within(t), "kv", Claimant{})
	heldBy(t, err, 0)
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, err = open(t, root, WithTTL(ttl)).Claim(within(t), "kv", Claimant{}) // a new Store each time
		if err == nil {
			if d := time.Since(begun); d < ttl-50*time.Millisecond {
				t.Errorf("granted after %v", d)
			}
			break
		}
		heldBy(t, err, 0)
		if time.Since(begun) > 30*time.Second {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(first.file("kv", seenSuffix)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the memory is still there: %v", err)
	}
}

func TestAClaimFailsIfTheCounterCannotBePersisted(t *testing.T) {
	s := open(t, t.TempDir())
	// A folder in the place of the counter's next content.
	if err := os.Mkdir(s.file("kv", epochSuffix)+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file("kv", epochSuffix)+".new/x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := s.Claim(within(t), "kv", Claimant{}); err == nil {
		t.Fatalf("granted epoch %d", l.Epoch())
	}
	if st, err := s.Inspect(within(t), "kv"); err != nil || st.State != StateFree || st.Holder != nil {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestTryClaimDoesNotWait(t *testing.T) {
	s := open(t, t.TempDir())
	lock, err := tryAcquire(s.file("kv", lockSuffix))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.TryClaim(within(t), "kv", Claimant{}); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	unlock(lock)
	l, err := s.TryClaim(within(t), "kv", Claimant{})
	if err != nil || l.Epoch() != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	_, err = s.TryClaim(within(t), "kv", Claimant{Block: "other"})
	heldBy(t, err, os.Getpid())
}

// TestACallStartsOverIfTheLockIsDeletedUnderIt: whoever came next is inside as well.
func TestACallStartsOverIfTheLockIsDeletedUnderIt(t *testing.T) {
	s := open(t, t.TempDir())
	deleted := 0
	atStep = func(step string) {
		if step == "took live" && deleted < 2 {
			deleted++
			os.Remove(s.file("kv", lockSuffix))
		}
	}
	defer func() { atStep = nil }()
	l := claim(t, s, "kv")
	if deleted != 2 || l.Epoch() != 1 {
		t.Errorf("deleted %d times, epoch %d: want two calls that changed nothing", deleted, l.Epoch())
	}
}

func TestTheRecordIsReadableByAPerson(t *testing.T) {
	s := open(t, t.TempDir())
	claim(t, s, "kv")
	var fields map[string]any
	text := contents(t, s.file("kv", leaseSuffix))
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"version", "key", "epoch", "claim", "run", "block", "host", "pid", "live", "ttl", "renewed_boottime_ns", "renewals", "session_hint", "label", "program_version", "since", "renewed"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("no %q in\n%s", name, text)
		}
	}
	if fields["ttl"] != "15s" || strings.Count(text, "\n") < 10 {
		t.Errorf("ttl is %v in\n%s", fields["ttl"], text)
	}
}
