package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/examples/kv/store"
	"github.com/standbyd/standbyd/plugins"
)

type leadership struct{ token role.Token }

func (l leadership) Token() role.Token { return l.token }
func (leadership) Check() error        { return nil }

// A snapshot of the folder of a store that is being written can be opened,
// and holds every write that was acknowledged before the snapshot began.
func TestSnapshotOfRunningStore(t *testing.T) {
	s, source, dir := configured(t, nil)
	s.Start = func(ctx context.Context, _ plugins.Transition) error { <-ctx.Done(); return nil }
	tr := transition(1)
	if err := s.OnPromote(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.OnDemote(context.Background(), tr) })
	// It begins journals, and replaces them by its own snapshots, all the time.
	st, err := store.Open(source, store.Options{PartBytes: 2 << 10, KeepJournals: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	w, err := st.Lead(t.Context(), leadership{tr.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const writers = 4
	var acked [writers]atomic.Uint64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := uint64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := w.Put(context.Background(), fmt.Sprint("k", i), []byte(strconv.FormatUint(n, 10))); err != nil {
					t.Error(err)
					return
				}
				acked[i].Store(n)
			}
		})
	}
	defer all.Wait()
	defer close(stop)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	taken := 0
	for end := time.Now().Add(2 * time.Second); taken < 3 || time.Now().Before(end); {
		var before [writers]uint64
		for i := range acked {
			before[i] = acked[i].Load()
		}
		n, m, err := s.take(t.Context(), root, tr, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if m.vanished > 0 {
			continue // five times in a row; the manifest and the log say so
		}
		taken++
		for _, f := range m.Files {
			if f.Path[0] == '.' {
				t.Errorf("%s is in the snapshot", f.Path)
			}
		}
		copied, err := store.Open(filepath.Join(dir, n.String(), filesName), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := copied.CatchUp(t.Context()); err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		cw, err := copied.Lead(t.Context(), leadership{tr.Token + 1})
		if err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		for i, want := range before {
			value, _, err := cw.Get(fmt.Sprint("k", i))
			have, _ := strconv.ParseUint(string(value), 10, 64)
			if err != nil || have < want {
				t.Errorf("%s: k%d is %q, %v; want at least %d", n, i, value, err, want)
			}
		}
		cw.Close()
		copied.Close()
	}
	t.Logf("%d snapshots, %v writes", taken, acked[0].Load()*writers)
}

func TestExclude(t *testing.T) {
	s, source, dir := configured(t, plugins.Table{"exclude": []any{".*.tmp", "cache", "logs/*.old"}})
	s.Start = func(ctx context.Context, _ plugins.Transition) error { <-ctx.Done(); return nil }
	tr := transition(1)
	if err := s.OnPromote(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.OnDemote(context.Background(), tr) })
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	write(t, filepath.Join(source, ".journal-1.tmp"), "half")
	if _, _, err := s.take(t.Context(), root, tr, time.Now()); err == nil {
		t.Error("a snapshot of nothing")
	}
	if have := names(t, dir); len(have) != 0 {
		t.Errorf("left: %v", have)
	}
	for _, p := range []string{"journal-1", ".hidden", "a.tmp", "cache/x", "logs/1.old", "logs/1.log", "1.old"} {
		write(t, filepath.Join(source, p), p)
	}
	_, m, err := s.take(t.Context(), root, tr, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range m.Files {
		have = append(have, f.Path)
	}
	if want := "[.hidden 1.old a.tmp journal-1 logs/1.log]"; fmt.Sprint(have) != want {
		t.Errorf("have %v, want %s", have, want)
	}
	if want := "[{.journal-1.tmp excluded by .*.tmp} {cache excluded by cache} {logs/1.old excluded by logs/*.old}]"; fmt.Sprint(m.Skipped) != want {
		t.Errorf("skipped %v", m.Skipped)
	}
	if c, err := readConfig(plugins.Table{"source": source, "dir": dir}); err != nil || c.excludes("d/.x.tmp") == "" || c.excludes("x.tmp") != "" {
		t.Errorf("by default: %v, %v", c.Exclude, err)
	}
	if c, err := readConfig(plugins.Table{"source": source, "dir": dir, "exclude": []any{}}); err != nil || c.excludes(".x.tmp") != "" {
		t.Errorf("nothing excluded: %v, %v", c.Exclude, err)
	}
	for _, p := range []string{"", "[", "../x", "/x"} {
		if _, err := readConfig(plugins.Table{"source": source, "dir": dir, "exclude": []any{p}}); err == nil {
			t.Errorf("exclude %q is accepted", p)
		}
	}
}
