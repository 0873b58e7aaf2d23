//go:build linux

package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// small is a folder on a file system of 1 MiB.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a small file system (wants root): %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill takes all the space there is; remove the file to give it back.
func fill(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "fill")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return name
}

// A leader without space for a journal serves reads, refuses writes with the
// reason, and opens its journal as soon as there is space.
func TestLeadOnFullDisk(t *testing.T) {
	dir := small(t)
	var terms terms
	first := lead(t, open(t, dir, Options{}), terms.next())
	put(t, first, "a", "1")
	full := fill(t, dir)

	var mu sync.Mutex
	var lines []string
	s := open(t, dir, Options{Log: func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf(format, args...))
	}})
	logged := func(text string) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range lines {
			if strings.Contains(l, text) {
				n++
			}
		}
		return n
	}
	follower := open(t, dir, Options{})
	// Two in a row: the first of them ends without ever having had a journal.
	w := lead(t, open(t, dir, Options{}), terms.next())
	fenced := w
	w.Close()
	w = lead(t, s, terms.next())
	if v, ok, err := w.Get("a"); string(v) != "1" || !ok || err != nil {
		t.Errorf("get: %q %v %v", v, ok, err)
	}
	if _, _, err := fenced.Get("a"); !errors.Is(err, ErrNotLeader) {
		t.Errorf("get from the one before: %v", err)
	}
	for range 2 {
		if err := w.Put(t.Context(), "b", []byte("2")); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "no space") {
			t.Errorf("put: %v", err)
		}
	}
	if st := w.Status(); !strings.Contains(st.ReadOnly, "no space") || st.Keys != 1 {
		t.Errorf("status: %+v", st)
	}
	if n := logged("no space"); n != 1 {
		t.Errorf("logged %d times: %q", n, lines)
	}
	wantContents(t, dir, map[string]string{"a": "1"})
	// What the one before writes from now on does not count.
	os.Remove(full)
	eventually.Holds(t, "it tries again by itself", func() bool { return w.Status().ReadOnly == "" })
	if err := first.Put(t.Context(), "late", []byte("x")); err == nil {
		t.Error("an earlier leader can write")
	}
	put(t, w, "b", "2")
	want := map[string]string{"a": "1", "b": "2"}
	wantContents(t, dir, want)
	if err := follower.CatchUp(t.Context()); err != nil || !maps.Equal(follower.strings(), want) {
		t.Errorf("follower: %v %v", follower.strings(), err)
	}
	if logged("space again") != 1 {
		t.Errorf("logged: %q", lines)
	}
}

// The very first leader, an empty store, and a write that finds the space.
func TestFirstLeadOnFullDisk(t *testing.T) {
	dir := small(t)
	var terms terms
	full := fill(t, dir)
	w := lead(t, open(t, dir, Options{}), terms.next())
	if _, ok, err := w.Get("a"); ok || err != nil {
		t.Errorf("get: %v %v", ok, err)
	}
	if err := w.Put(t.Context(), "a", []byte("1")); !errors.Is(err, ErrFull) {
		t.Errorf("put: %v", err)
	}
	os.Remove(full)
	put(t, w, "a", "1")
	wantContents(t, dir, map[string]string{"a": "1"})
}

// A leadership that ends while it has no journal leaves none behind: the
// check comes after the journal, and before the first write.
func TestJournalOfLateStarvedLeader(t *testing.T) {
	dir := small(t)
	var terms terms
	first := lead(t, open(t, dir, Options{}), terms.next())
	put(t, first, "a", "1")
	full := fill(t, dir)
	stale := lead(t, open(t, dir, Options{}), terms.next())
	next := terms.next() // stale has been overtaken
	os.Remove(full)
	if err := stale.Put(t.Context(), "late", []byte("x")); !errors.Is(err, ErrNotLeader) {
		t.Errorf("put: %v", err)
	}
	w := lead(t, open(t, dir, Options{}), next)
	put(t, w, "b", "2")
	wantContents(t, dir, map[string]string{"a": "1", "b": "2"})
}
