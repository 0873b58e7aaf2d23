package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/test/eventually"
)

// terms hands out leaderships of one role; each new one ends the one before.
type terms struct{ current atomic.Uint64 }

type term struct {
	of    *terms
	token role.Token
}

var errFenced = errors.New("fenced")

func (t *terms) next() *term {
	return &term{of: t, token: role.Token(t.current.Add(1))}
}

func (l *term) Token() role.Token { return l.token }

func (l *term) Check() error {
	if l.of.current.Load() != uint64(l.token) {
		return errFenced
	}
	return nil
}

func open(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func lead(t *testing.T, s *Store, l Leadership) *Writer {
	t.Helper()
	w, err := s.Lead(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func put(t *testing.T, w *Writer, key, value string) {
	t.Helper()
	if err := w.Put(t.Context(), key, []byte(value)); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

// contents reads the folder as a worker would that starts now.
func contents(t *testing.T, dir string) (map[string]string, error) {
	t.Helper()
	s := open(t, dir, Options{})
	err := s.CatchUp(t.Context())
	return s.strings(), err
}

func (s *Store) strings() map[string]string {
	s.r.mu.RLock()
	defer s.r.mu.RUnlock()
	got := map[string]string{}
	for k, v := range s.r.state {
		got[k] = string(v)
	}
	return got
}

func wantContents(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got, err := contents(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("store has %v, want %v", got, want)
	}
}

func TestPutGetDelete(t *testing.T) {
	var role terms
	w := lead(t, open(t, t.TempDir(), Options{}), role.next())
	put(t, w, "a", "1")
	put(t, w, "a", "2")
	put(t, w, "empty", "")
	if v, ok, err := w.Get("a"); string(v) != "2" || !ok || err != nil {
		t.Errorf("get a: %q %v %v", v, ok, err)
	}
	if v, ok, err := w.Get("empty"); len(v) != 0 || !ok || err != nil {
		t.Errorf("get empty: %q %v %v", v, ok, err)
	}
	before := w.Status()
	if err := w.Delete(t.Context(), "nothing"); err != nil {
		t.Error(err)
	}
	if after := w.Status(); after.Sequence != before.Sequence {
		t.Errorf("deleting nothing wrote a record")
	}
	if err := w.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if _, ok, err := w.Get("a"); ok || err != nil {
		t.Errorf("get a after delete: %v %v", ok, err)
	}
	for _, c := range []struct {
		key   string
		value []byte
	}{{"", nil}, {strings.Repeat("k", MaxKey+1), nil}, {"k", make([]byte, MaxValue+1)}} {
		if err := w.Put(t.Context(), c.key, c.value); !errors.Is(err, ErrLimit) {
			t.Errorf("put key of %d, value of %d: %v", len(c.key), len(c.value), err)
		}
	}
	if err := w.Put(t.Context(), strings.Repeat("k", MaxKey), make([]byte, MaxValue)); err != nil {
		t.Errorf("largest record: %v", err)
	}
}

func TestNextLeaderHasEverything(t *testing.T) {
	dir := t.TempDir()
	var role terms
	want := map[string]string{}
	for i := range 6 {
		w := lead(t, open(t, dir, Options{}), role.next())
		for k, v := range want {
			if got, ok, err := w.Get(k); string(got) != v || !ok || err != nil {
				t.Fatalf("leader %d: %s is %q %v %v, want %q", i, k, got, ok, err, v)
			}
		}
		for j := range 5 {
			k, v := fmt.Sprint("k", j+i), fmt.Sprint("v", i)
			put(t, w, k, v)
			want[k] = v
		}
		if i%2 == 0 {
			w.Close() // handed over; otherwise it is as if killed
		}
	}
	wantContents(t, dir, want)
}

// A crash may leave any prefix of the last write. Every earlier record
// survives, and the next leader writes on.
func TestCrashAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	w := lead(t, open(t, dir, Options{}), terms.next())
	put(t, w, "first", "kept")
	before := w.Status().Bytes
	put(t, w, "last", "a value of some length")
	st := w.Status()
	w.Close()
	file := filepath.Join(dir, st.File)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, garbage := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00", "kvR1", strings.Repeat("kvR1kvR1\xff", 30)} {
		for n := before; n <= int64(len(whole)); n++ {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, st.File), append(slices.Clip(whole[:n]), garbage...), 0o644); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"first": "kept"}
			if n == int64(len(whole)) {
				want["last"] = "a value of some length"
			}
			wantContents(t, dir, want)
			if n%5 != 0 && n != int64(len(whole)) {
				continue
			}
			w := lead(t, open(t, dir, Options{}), terms.next())
			put(t, w, "next", "x")
			w.Close()
			want["next"] = "x"
			wantContents(t, dir, want)
		}
	}
}

// Fence "token": the old leader wakes up after the new one leads, and writes.
func TestLateWriteOfStaleLeader(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	follower := open(t, dir, Options{})
	old := lead(t, open(t, dir, Options{}), terms.next())
	put(t, old, "k", "acknowledged")

	// Between write and check the old one loses: the record is in its journal.
	l := terms.next()
	racing := open(t, dir, Options{})
	w := lead(t, racing, l)
	wantContents(t, dir, map[string]string{"k": "acknowledged"})
	late := record{op: opPut, token: old.id.Token, seq: 2, durable: old.offset, key: "k", value: []byte("late")}
	if _, err := old.f.WriteAt(appendRecord(nil, old.salt, old.offset, late), old.offset); err != nil {
		t.Fatal(err)
	}
	wantContents(t, dir, map[string]string{"k": "acknowledged"})
	if err := old.Put(t.Context(), "k", []byte("refused")); !errors.Is(err, ErrNotLeader) {
		t.Errorf("late put: %v", err)
	}
	if _, _, err := old.Get("k"); !errors.Is(err, ErrNotLeader) {
		t.Errorf("late get: %v", err)
	}
	put(t, w, "k2", "new")
	next := lead(t, open(t, dir, Options{}), terms.next())
	if v, _, _ := next.Get("k"); string(v) != "acknowledged" {
		t.Errorf("third leader serves %q", v)
	}
	if err := follower.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := follower.strings(); got["k"] != "acknowledged" || got["k2"] != "new" {
		t.Errorf("follower has %v", got)
	}
}

// A standby that has already applied a record that turns out not to count
// gives it up.
func TestFollowerUndoesWhatDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	old := lead(t, open(t, dir, Options{}), terms.next())
	put(t, old, "a", "1")
	// The next leader has read the journal and not yet begun its own.
	slow := open(t, dir, Options{})
	if err := slow.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, old, "b", "2")
	follower := open(t, dir, Options{})
	if err := follower.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(follower.strings()) != 2 {
		t.Fatalf("follower has %v", follower.strings())
	}
	l := terms.next()
	w := &Writer{s: slow, l: l, kick: make(chan struct{}, 1)}
	found, _ := list(dir)
	if err := w.open(ID{Token: l.token, Part: 1}, found); err != nil {
		t.Fatal(err)
	}
	if err := follower.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := follower.strings(); !maps.Equal(got, map[string]string{"a": "1"}) {
		t.Errorf("follower has %v", got)
	}
}

// A leader that was stopped before it opened its journal opens it after its
// successor has: nobody ever reads it.
func TestLateJournalOfStaleLeader(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	first := lead(t, open(t, dir, Options{}), terms.next())
	put(t, first, "k", "1")
	paused, stale := open(t, dir, Options{}), terms.next()
	if err := paused.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := lead(t, open(t, dir, Options{}), terms.next())
	put(t, w, "k", "3")

	if _, err := paused.Lead(t.Context(), stale); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("stale lead: %v", err)
	}
	// And the narrow way: past the listing already.
	sw := &Writer{s: first.s, l: stale, kick: make(chan struct{}, 1)}
	if err := sw.open(ID{Token: stale.token, Part: 1}, listing{}); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("stale open: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, ID{stale.token, 1}.String())); err != nil {
		t.Fatalf("the test wants the stale journal to exist: %v", err)
	}
	wantContents(t, dir, map[string]string{"k": "3"})
	next := lead(t, open(t, dir, Options{}), terms.next())
	put(t, next, "k2", "4")
	wantContents(t, dir, map[string]string{"k": "3", "k2": "4"})
}

func TestCorruptionIsNeverSkipped(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	for i := range 3 {
		w := lead(t, open(t, dir, Options{}), terms.next())
		put(t, w, fmt.Sprint("a", i), strings.Repeat("x", 50))
		put(t, w, fmt.Sprint("b", i), strings.Repeat("y", 50))
		put(t, w, fmt.Sprint("c", i), strings.Repeat("z", 50))
		w.Close()
	}
	l, err := list(dir)
	if err != nil || len(l.journals) != 3 {
		t.Fatalf("journals: %v %v", l.journals, err)
	}
	for _, id := range l.journals {
		name := filepath.Join(dir, id.String())
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		newest := id == l.newest()
		lastRecord := len(whole) - (recordHeader + 2 + 50)
		for at := range whole {
			damaged := slices.Clone(whole)
			damaged[at] ^= 0x10
			os.WriteFile(name, damaged, 0o644)
			_, err := contents(t, dir)
			if newest && at >= lastRecord {
				// Not to be told from an unfinished write.
				if err != nil {
					t.Fatalf("last record, byte %d: %v", at, err)
				}
			} else if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), id.String()) {
				t.Fatalf("%s byte %d of %d: %v", id, at, len(whole), err)
			}
			if newest || at%10 != 0 {
				continue
			}
			if _, err := open(t, dir, Options{}).Lead(t.Context(), &term{&terms, 99}); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("lead over damage: %v", err)
			}
		}
		if !newest {
			for n := range whole {
				os.WriteFile(name, whole[:n], 0o644)
				if _, err := contents(t, dir); !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%s cut to %d of %d: %v", id, n, len(whole), err)
				}
			}
			os.Remove(name)
			if _, err := contents(t, dir); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s removed: %v", id, err)
			}
		}
		os.WriteFile(name, whole, 0o644)
	}
	if _, err := contents(t, dir); err != nil {
		t.Fatal(err)
	}
}

// A value that looks like a record is not taken for one when the end of the
// journal is searched.
func TestForgedRecordInsideValue(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	w := lead(t, open(t, dir, Options{}), terms.next())
	forged := appendRecord(nil, 0, w.offset+recordHeader+1, record{op: opPut, token: 1, seq: 2, durable: 1 << 40, key: "x"})
	put(t, w, "k", string(forged)+strings.Repeat(" ", 100))
	st := w.Status()
	w.Close()
	if err := os.Truncate(filepath.Join(dir, st.File), st.Bytes-10); err != nil {
		t.Fatal(err)
	}
	wantContents(t, dir, map[string]string{})
}

func TestFailedSyncFailsClosed(t *testing.T) {
	for _, step := range []string{"write", "sync"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			var terms terms
			var broken atomic.Bool
			errDisk := errors.New("input/output error")
			s := open(t, dir, Options{disk: disk{
				writeAt: func(f *os.File, b []byte, at int64) (int, error) {
					if broken.Load() && step == "write" {
						n, _ := f.WriteAt(b[:len(b)/2], at)
						return n, errDisk
					}
					return f.WriteAt(b, at)
				},
				sync: func(f *os.File) error {
					if broken.Load() && step == "sync" {
						return errDisk
					}
					return f.Sync()
				},
			}})
			w := lead(t, s, terms.next())
			put(t, w, "a", "1")
			broken.Store(true)
			if err := w.Put(t.Context(), "b", []byte("2")); !errors.Is(err, ErrUnconfirmed) || !errors.Is(err, errDisk) {
				t.Fatalf("put: %v", err)
			}
			if _, ok, _ := w.Get("b"); ok {
				t.Error("an unconfirmed write is served")
			}
			// Even if the disk comes back, this journal takes nothing any more.
			broken.Store(false)
			if err := w.Put(t.Context(), "c", []byte("3")); !errors.Is(err, ErrNotLeader) || !errors.Is(err, errDisk) {
				t.Fatalf("put after failure: %v", err)
			}
			select {
			case <-w.Broken():
			case <-time.After(30 * time.Second):
				t.Fatal("the writer does not say that it is broken")
			}
			w.Close()
			next := lead(t, open(t, dir, Options{}), terms.next())
			if v, _, _ := next.Get("a"); string(v) != "1" {
				t.Errorf("a is %q", v)
			}
			if _, ok, _ := next.Get("c"); ok {
				t.Error("c was refused and is there")
			}
			put(t, next, "c", "3")
			wantContents(t, dir, next.s.strings())
		})
	}
}

// A full disk costs writes, not the leadership, and once there is space again
// the store goes on; what failed without confirmation does not count then.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	var full atomic.Bool
	s := open(t, dir, Options{disk: disk{sync: (*os.File).Sync, writeAt: func(f *os.File, b []byte, at int64) (int, error) {
		if full.Load() {
			n, _ := f.WriteAt(b[:len(b)-5], at)
			return n, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}
		return f.WriteAt(b, at)
	}}})
	follower := open(t, dir, Options{})
	w := lead(t, s, terms.next())
	put(t, w, "a", "1")
	full.Store(true)
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			if err := w.Put(t.Context(), fmt.Sprint("lost", i), []byte("2")); !errors.Is(err, ErrUnconfirmed) && !errors.Is(err, ErrFull) {
				t.Errorf("put on a full disk: %v", err)
			}
		})
	}
	all.Wait()
	if err := follower.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Put(t.Context(), "refused", []byte("2")); !errors.Is(err, ErrFull) {
		t.Errorf("put on a full disk: %v", err)
	}
	if v, ok, err := w.Get("a"); string(v) != "1" || !ok || err != nil {
		t.Errorf("get on a full disk: %q %v %v", v, ok, err)
	}
	full.Store(false)
	put(t, w, "b", "3")
	want := map[string]string{"a": "1", "b": "3"}
	wantContents(t, dir, want)
	if err := follower.CatchUp(t.Context()); err != nil || !maps.Equal(follower.strings(), want) {
		t.Errorf("follower: %v %v", follower.strings(), err)
	}
	next := lead(t, open(t, dir, Options{}), terms.next())
	put(t, next, "c", "4")
	want["c"] = "4"
	wantContents(t, dir, want)
}

// The leadership ends while the fsync is under way.
func TestLossDuringSync(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	var lose atomic.Bool
	s := open(t, dir, Options{disk: disk{writeAt: (*os.File).WriteAt, sync: func(f *os.File) error {
		err := f.Sync()
		if lose.Load() {
			terms.next()
		}
		return err
	}}})
	w := lead(t, s, terms.next())
	put(t, w, "a", "1")
	lose.Store(true)
	if err := w.Put(t.Context(), "b", []byte("2")); !errors.Is(err, ErrUnconfirmed) || !errors.Is(err, errFenced) {
		t.Fatalf("put: %v", err)
	}
	if _, _, err := w.Get("a"); !errors.Is(err, ErrNotLeader) {
		t.Errorf("get: %v", err)
	}
}

func TestTokenThatDoesNotRise(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	terms.next()
	w := lead(t, open(t, dir, Options{}), terms.next())
	put(t, w, "a", "1")
	w.Close()
	terms.current.Store(0) // as if the supervisor's state had been removed
	if _, err := open(t, dir, Options{}).Lead(t.Context(), terms.next()); !errors.Is(err, ErrAhead) || !IsFatal(err) {
		t.Fatalf("lead: %v", err)
	}
}

func TestOtherRole(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	lead(t, open(t, dir, Options{Role: "kv"}), terms.next()).Close()
	if err := open(t, dir, Options{Role: "other"}).CatchUp(t.Context()); !errors.Is(err, ErrRole) {
		t.Fatalf("catch up: %v", err)
	}
}

func TestPartsAndSnapshots(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	o := Options{PartBytes: 2000, KeepJournals: 3, KeepBytes: 1 << 20}
	want := map[string]string{}
	slow := open(t, dir, o)
	var wrote atomic.Int64
	logged := o
	logged.Log = func(f string, a ...any) {
		if strings.HasPrefix(f, "wrote") {
			wrote.Add(1)
		}
	}
	for i := range 12 {
		w := lead(t, open(t, dir, logged), terms.next())
		if i == 2 {
			if err := slow.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for j := range 60 {
			k, v := fmt.Sprint("k", (i*60+j)%97), strings.Repeat(fmt.Sprint(i, j, "."), 10)
			put(t, w, k, v)
			want[k] = v
			if j%7 == 0 {
				k := fmt.Sprint("k", (i*31+j)%97)
				if err := w.Delete(t.Context(), k); err != nil {
					t.Fatal(err)
				}
				delete(want, k)
			}
		}
		w.Close()
		wantContents(t, dir, want)
	}
	// One that nobody interrupts always gets there.
	w := lead(t, open(t, dir, logged), terms.next())
	eventually.Shows(t, "the journals are compacted", func() (bool, string) {
		l, err := list(dir)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := l.older(dir)
		return n <= o.KeepJournals && len(l.snapshots) == 1, fmt.Sprintf("%+v", l)
	})
	if wrote.Load() == 0 {
		t.Error("no snapshot was written")
	}
	wantContents(t, dir, want)
	// A follower whose journals are gone starts from the snapshot.
	if err := slow.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(slow.strings(), want) {
		t.Error("the slow follower differs")
	}
	put(t, w, "more", "1")
	want["more"] = "1"
	wantContents(t, dir, want)
	w.Close()

	// A damaged snapshot is damage.
	l, _ := list(dir)
	name := filepath.Join(dir, snapshotName(Position{ID: l.snapshots[0].id, Offset: l.snapshots[0].offset}))
	whole, _ := os.ReadFile(name)
	for range 200 {
		b := slices.Clone(whole)
		b[rand.IntN(len(b))] ^= 1
		os.WriteFile(name, b, 0o644)
		if _, err := contents(t, dir); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("damaged snapshot: %v", err)
		}
	}
}

// A leader that was stopped in the middle of a compaction finishes it after
// others have led: nothing that counts is lost.
func TestLateCompactionOfStaleLeader(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	o := Options{KeepJournals: 1}
	want := map[string]string{}
	var old *Writer
	for i := range 3 {
		old = lead(t, open(t, dir, Options{}), terms.next())
		put(t, old, fmt.Sprint("k", i), "v")
		want[fmt.Sprint("k", i)] = "v"
	}
	for i := range 2 {
		w := lead(t, open(t, dir, Options{}), terms.next())
		put(t, w, fmt.Sprint("n", i), "v")
		want[fmt.Sprint("n", i)] = "v"
	}
	for {
		_, err := old.replace(t.Context())
		if err == nil {
			break
		}
		// The others tidy up behind it, which may be its own unfinished file.
		if !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("late compaction: %v", err)
		}
	}
	wantContents(t, dir, want)
	w := lead(t, open(t, dir, o), terms.next())
	put(t, w, "last", "v")
	want["last"] = "v"
	wantContents(t, dir, want)
}

func TestTidyRemovesUnfinishedFiles(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	terms.next()
	left := filepath.Join(dir, "."+ID{1, 1}.String()+"-123"+tempSuffix)
	os.WriteFile(left, []byte("half"), 0o644)
	lead(t, open(t, dir, Options{}), terms.next())
	eventually.Holds(t, "the unfinished file of a dead leader is removed", func() bool { _, err := os.Stat(left); return os.IsNotExist(err) })
}

// Many writers and readers, followers behind them, leaders that change under
// load: whatever was acknowledged is there, and nothing else than what was put.
func TestConcurrency(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	o := Options{PartBytes: 20000, KeepJournals: 3, KeepBytes: 1 << 20}
	ctx, cancel := context.WithCancel(t.Context())
	followers := []*Store{open(t, dir, o), open(t, dir, o)}
	var following, writing sync.WaitGroup
	for _, f := range followers {
		following.Go(func() {
			if err := f.Follow(ctx); err != nil {
				t.Errorf("follow: %v", err)
			}
		})
	}
	var mu sync.Mutex
	acked := map[string]string{}
	var current atomic.Pointer[Writer]
	current.Store(lead(t, open(t, dir, o), terms.next()))
	const writers, writes = 8, 60
	var seen atomic.Int64
	for i := range writers {
		writing.Go(func() {
			for j := 0; j < writes; {
				k, v := fmt.Sprintf("w%d.%d", i, j), fmt.Sprintf("v%d", rand.IntN(1000))
				w := current.Load()
				if err := w.Put(ctx, k, []byte(v)); err != nil {
					if IsFatal(err) {
						t.Errorf("put: %v", err)
						return
					}
					time.Sleep(time.Millisecond)
					continue
				}
				mu.Lock()
				acked[k] = v
				mu.Unlock()
				if got, ok, err := w.Get(k); err == nil && (!ok || string(got) != v) {
					t.Errorf("read own write %s: %q, want %q", k, got, v)
				}
				seen.Add(1)
				j++
			}
		})
	}
	stores := append(slices.Clone(followers), open(t, dir, o))
	for n := range 6 {
		for seen.Load() < int64((n+1)*writers*writes/8) && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		// The old one is not told: its own checks must find out.
		old := current.Load()
		next, err := stores[n%3].Lead(ctx, terms.next())
		if err != nil {
			t.Fatal(err)
		}
		current.Store(next)
		old.Close()
	}
	writing.Wait()
	got, err := contents(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range acked {
		if got[k] != v {
			t.Errorf("acknowledged %s=%s, found %q", k, v, got[k])
		}
	}
	current.Load().Close()
	for _, f := range followers {
		eventually.Shows(t, fmt.Sprintf("a follower has all %d keys", len(got)), func() (bool, string) {
			return f.Position() == followers[0].Position() && f.Keys() == len(got), fmt.Sprintf("%s, %d keys", f.Position(), f.Keys())
		})
	}
	cancel()
	following.Wait()
}

func TestGroupCommit(t *testing.T) {
	dir := t.TempDir()
	var terms terms
	var syncs atomic.Int64
	s := open(t, dir, Options{disk: disk{writeAt: (*os.File).WriteAt, sync: func(f *os.File) error {
		syncs.Add(1)
		time.Sleep(2 * time.Millisecond)
		return f.Sync()
	}}})
	w := lead(t, s, terms.next())
	before := syncs.Load()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if err := w.Put(t.Context(), fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, i*10)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := syncs.Load() - before; n > 50 {
		t.Errorf("100 concurrent writes took %d syncs", n)
	}
}

func TestCloseAnswersEverything(t *testing.T) {
	for range 20 {
		var terms terms
		w := lead(t, open(t, t.TempDir(), Options{}), terms.next())
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if err := w.Put(t.Context(), fmt.Sprint(i), nil); err != nil && !errors.Is(err, ErrNotLeader) {
					t.Error(err)
				}
			})
		}
		w.Close()
		all.Wait()
	}
}
