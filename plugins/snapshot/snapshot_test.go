package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/plugins"
	"github.com/standbyd/standbyd/test/eventually"
)

func write(t *testing.T, p, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func transition(term uint64) plugins.Transition {
	return plugins.Transition{Role: "kv", Worker: "kv-0", Token: role.MakeToken(1, term)}
}

// configured is a snapshotter of source into dir, beside each other.
func configured(t *testing.T, change plugins.Table) (s *snapshotter, source, dir string) {
	t.Helper()
	root := t.TempDir()
	source, dir = filepath.Join(root, "data"), filepath.Join(root, "snapshots")
	table := plugins.Table{"source": source, "dir": dir, "every": "100ms", "keep": int64(3)}
	for k, v := range change {
		table[k] = v
	}
	s = newSnapshotter()
	if err := s.Configure(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	return s, source, dir
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// whole lists the whole snapshots, oldest first.
func whole(t *testing.T, dir string) []name {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	list, _, err := list(root)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// verify compares a snapshot with its manifest.
func verify(t *testing.T, dir string, n name) *manifest {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m, err := readManifest(root, n)
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	var have, want []string
	for _, f := range m.Files {
		b, err := os.ReadFile(filepath.Join(dir, n.String(), filesName, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if int64(len(b)) != f.Size || hex.EncodeToString(sum[:]) != f.SHA256 {
			t.Errorf("%s: %s is not what the manifest says", n, f.Path)
		}
		bytes += f.Size
		want = append(want, f.Path)
	}
	for _, l := range m.Links {
		want = append(want, l.Path)
	}
	want = append(want, m.Folders...)
	base := filepath.Join(dir, n.String(), filesName)
	filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(base, p); rel != "." {
			have = append(have, rel)
		}
		return err
	})
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("%s holds %v, the manifest says %v", n, have, want)
	}
	if m.Bytes != bytes || m.Token != n.token || !m.Time.Equal(n.at) || m.Role != "kv" || m.Worker != "kv-0" {
		t.Errorf("%s: manifest %+v", n, m)
	}
	return m
}

func TestSnapshotsRotateWhileLeading(t *testing.T) {
	s, source, dir := configured(t, nil)
	write(t, source+"/a", "one")
	write(t, source+"/sub/b", "two")
	write(t, dir+"/not-ours", "stays")
	if err := s.OnPromote(t.Context(), transition(7)); err != nil {
		t.Fatal(err)
	}
	var first name
	eventually.Holds(t, "a first snapshot", func() bool {
		if list := whole(t, dir); len(list) > 0 {
			first = list[0]
		}
		return first.token != 0
	})
	eventually.Holds(t, "it is rotated away", func() bool {
		list := whole(t, dir)
		return len(list) > 0 && list[0] != first
	})
	if err := s.OnDemote(t.Context(), transition(7)); err != nil {
		t.Fatal(err)
	}
	list := whole(t, dir)
	if len(list) == 0 || len(list) > 4 { // one may be over, if the end came before the removal
		t.Errorf("%d are kept", len(list))
	}
	for _, n := range list {
		m := verify(t, dir, n)
		if len(m.Files) != 2 || n.token != transition(7).Token || !strings.HasSuffix(n.String(), "-1.7") {
			t.Errorf("%s: %+v", n, m)
		}
	}
	before := names(t, dir)
	time.Sleep(300 * time.Millisecond) // three times every
	if after := names(t, dir); !slices.Equal(before, after) {
		t.Errorf("changed after OnDemote: %v, %v", before, after)
	}
	if !slices.Contains(before, "not-ours") {
		t.Error("something that is not ours was removed")
	}
}

func TestCopyKeepsWhatIsThereAndFollowsNothing(t *testing.T) {
	s, source, dir := configured(t, nil)
	outside := t.TempDir()
	write(t, outside+"/secret", "x")
	write(t, source+"/manifest.json", "a file of that name")
	write(t, source+"/deep/er/file", "x")
	write(t, source+"/empty", "")
	os.Mkdir(source+"/nothing", 0o755)
	os.Chmod(source+"/deep/er", 0o500)
	t.Cleanup(func() { os.Chmod(source+"/deep/er", 0o700) })
	for link, target := range map[string]string{"out": outside, "file": outside + "/secret", "up": "../..", "in": "deep", "dangling": "no"} {
		if err := os.Symlink(target, source+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(source+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", source+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	os.Chtimes(source+"/empty", old, old)

	if err := s.OnPromote(t.Context(), transition(1)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "a snapshot", func() bool { return len(whole(t, dir)) > 0 })
	if err := s.OnDemote(t.Context(), transition(1)); err != nil {
		t.Fatal(err)
	}
	n := whole(t, dir)[0]
	m := verify(t, dir, n)
	if len(m.Files) != 3 || len(m.Links) != 5 || len(m.Skipped) != 2 || len(m.Folders) != 3 {
		b, _ := json.MarshalIndent(m, "", " ")
		t.Errorf("manifest %s", b)
	}
	base := filepath.Join(dir, n.String(), filesName)
	if target, err := os.Readlink(base + "/out"); target != outside || err != nil {
		t.Errorf("the link out is %q, %v", target, err)
	}
	if info, err := os.Stat(base + "/empty"); err != nil || info.Mode().Perm() != 0o640 || !info.ModTime().Equal(old) {
		t.Errorf("empty: %v, %v", info, err)
	}
	if info, err := os.Stat(base + "/deep/er"); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("deep/er: %v, %v", info, err)
	}
	// It can be removed all the same.
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := removeTree(root, n.String()); err != nil {
		t.Error(err)
	}
}

// A journal that grows is copied as a prefix of itself.
func TestGrowingFileGivesAPrefix(t *testing.T) {
	s, source, dir := configured(t, plugins.Table{"keep": int64(1000)})
	write(t, source+"/journal", "")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		f, err := os.OpenFile(source+"/journal", os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			fmt.Fprintf(f, "record %08d\n", i)
			// Names come and go at the same time.
			os.WriteFile(fmt.Sprintf("%s/temp%d", source, i%10), []byte("x"), 0o600)
			os.Remove(fmt.Sprintf("%s/temp%d", source, (i+5)%10))
		}
	}()
	if err := s.OnPromote(t.Context(), transition(1)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "five snapshots", func() bool { return len(whole(t, dir)) >= 5 })
	close(stop)
	<-stopped
	if err := s.OnDemote(t.Context(), transition(1)); err != nil {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(source + "/journal")
	if err != nil {
		t.Fatal(err)
	}
	size := -1
	for _, n := range whole(t, dir) {
		verify(t, dir, n)
		b, err := os.ReadFile(filepath.Join(dir, n.String(), filesName, "journal"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(journal), string(b)) || len(b) < size {
			t.Errorf("%s: %d bytes are no prefix, or fewer than before", n, len(b))
		}
		size = len(b)
	}
}

func TestLeftoversOfACrashAreRemoved(t *testing.T) {
	s, source, dir := configured(t, nil)
	write(t, source+"/a", "x")
	old := name{at: time.Now(), token: role.MakeToken(1, 1)}.String()
	write(t, dir+"/"+building+old+"/files/a", "half")
	write(t, dir+"/"+leaving+old+"/files/a", "half")
	write(t, dir+"/.building-of-somebody-else", "x")
	if err := s.OnPromote(t.Context(), transition(2)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "a snapshot", func() bool { return len(whole(t, dir)) > 0 })
	if err := s.OnDemote(t.Context(), transition(2)); err != nil {
		t.Fatal(err)
	}
	for _, n := range names(t, dir) {
		if n == building+old || n == leaving+old {
			t.Errorf("%s is left", n)
		}
	}
	if _, err := os.Stat(dir + "/.building-of-somebody-else"); err != nil {
		t.Error(err)
	}
}

// A folder that a later leader has written to takes nothing from an earlier
// one, whose plugin may be late.
func TestLowerTokenIsRefused(t *testing.T) {
	s, source, dir := configured(t, nil)
	write(t, source+"/a", "x")
	later := name{at: time.Now().Add(-time.Hour), token: role.MakeToken(1, 9)}
	write(t, filepath.Join(dir, later.String(), "files/a"), "x")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s.Start = func(ctx context.Context, _ plugins.Transition) error { <-ctx.Done(); return nil }
	if err := s.OnPromote(t.Context(), transition(8)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.take(t.Context(), root, transition(8), time.Now()); err == nil || !strings.Contains(err.Error(), "of a later leadership") {
		t.Errorf("have %v", err)
	}
	if list := whole(t, dir); len(list) != 1 || list[0].token != later.token {
		t.Errorf("have %v", list)
	}
	_ = s.OnDemote(t.Context(), transition(8))
}

func TestAnotherRolesFolderIsRefused(t *testing.T) {
	s, source, dir := configured(t, nil)
	write(t, source+"/a", "x")
	if err := s.OnPromote(t.Context(), transition(1)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "a snapshot", func() bool { return len(whole(t, dir)) > 0 })
	if err := s.OnDemote(t.Context(), transition(1)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	other := transition(2)
	other.Role = "web"
	if _, err := s.next(root, other, time.Now()); err == nil || !strings.Contains(err.Error(), "snapshots of role kv") {
		t.Errorf("have %v", err)
	}
}

func TestClockThatWasSetBack(t *testing.T) {
	s, _, dir := configured(t, plugins.Table{"every": "1h"})
	future := name{at: time.Now().Add(48 * time.Hour).UTC().Truncate(time.Millisecond), token: role.MakeToken(1, 3)}
	write(t, filepath.Join(dir, future.String(), "files/a"), "x")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	n, err := s.next(root, transition(3), time.Now())
	if err != nil || !n.at.After(future.at) {
		t.Errorf("next is %s, %v", n, err)
	}
	if wait := s.firstWait(root, time.Now()); wait != time.Hour {
		t.Errorf("first wait %v", wait)
	}
	if wait := s.firstWait(root, future.at.Add(2*time.Hour)); wait != 0 {
		t.Errorf("first wait %v when it is overdue", wait)
	}
}

func TestNames(t *testing.T) {
	n := name{at: time.Date(2026, 1, 2, 15, 4, 5, 123e6, time.UTC), token: role.MakeToken(3, 17)}
	if n.String() != "snapshot-20260102T150405.123Z-3.17" {
		t.Error(n)
	}
	if back, ok := parseName(n.String()); !ok || back != n {
		t.Error(back, ok)
	}
	for _, s := range []string{"", "snapshot-", "snapshot-x-1.1", "snapshot-20260102T150405.123Z", "snapshot-20260102T150405.123Z-x",
		"snapshot-20260102T150405.123Z-13194139533329", "snapshot-20260102T150405.123Z-3.17-old", ".building-" + n.String()} {
		if n, ok := parseName(s); ok {
			t.Errorf("%q is %v", s, n)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/data/file", "x")
	if err := os.Symlink(root+"/data", root+"/link"); err != nil {
		t.Fatal(err)
	}
	good := func(change plugins.Table) plugins.Table {
		table := plugins.Table{"source": root + "/data", "dir": root + "/snapshots"}
		for k, v := range change {
			if v == nil {
				delete(table, k)
			} else {
				table[k] = v
			}
		}
		return table
	}
	if c, err := readConfig(good(nil)); err != nil || c.Every != time.Minute || c.Keep != 5 {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := os.Stat(root + "/snapshots"); err == nil {
		t.Error("Configure made a folder")
	}
	for _, c := range []struct {
		change plugins.Table
		want   string
	}{
		{plugins.Table{"source": nil}, `"source" is missing`},
		{plugins.Table{"dir": nil}, `"dir" is missing`},
		{plugins.Table{"every": "fast"}, `is no duration`},
		{plugins.Table{"every": int64(60)}, `want a duration in quotes`},
		{plugins.Table{"every": "0s"}, `too short`},
		{plugins.Table{"keep": int64(0)}, `the least is 1`},
		{plugins.Table{"kep": int64(1)}, `did you mean "keep"?`},
		{plugins.Table{"source": root + "/data/file"}, `is not a folder`},
		{plugins.Table{"dir": root + "/data/file"}, `is not a folder`},
		{plugins.Table{"dir": root + "/data"}, `is inside source`},
		{plugins.Table{"dir": root + "/data/snapshots/x"}, `is inside source`},
		{plugins.Table{"dir": root + "/link/snapshots"}, `is inside source`},
		{plugins.Table{"dir": root + "/other/../data/x"}, `is inside source`},
	} {
		if _, err := readConfig(good(c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: have %v, want %q", c.change, err, c.want)
		}
	}
	if _, err := readConfig(good(plugins.Table{"dir": root + "/data-snapshots"})); err != nil {
		t.Errorf("a name that begins alike: %v", err)
	}
}
