package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/plugins"
	"github.com/standbyd/standbyd/test/eventually"
)

// plant makes files with an age; a name that ends in '/' is a folder.
func plant(t *testing.T, dir string, ages map[string]time.Duration) {
	t.Helper()
	for name, age := range ages {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// tempDir is one without a link on the way, as there is on some systems.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func left(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// leadingCollector is one whose role leads, and stays so until the test ends.
func leadingCollector(t *testing.T, table plugins.Table) *collector {
	t.Helper()
	c := newCollector()
	if err := c.Configure(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	c.Start = func(ctx context.Context, _ plugins.Transition) error { <-ctx.Done(); return nil }
	tr := plugins.Transition{Role: "kv", Token: role.MakeToken(1, 1)}
	if err := c.OnPromote(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.OnDemote(context.Background(), tr) })
	return c
}

const day = 24 * time.Hour

func TestCollects(t *testing.T) {
	files := map[string]time.Duration{
		"a.log": 10 * day, "b.log": 3 * day, "c.log": day, "d.log": 0, "future.log": -10 * day,
		"keep.txt": 100 * day, ".hidden.log": 10 * day,
		"sub/e.log": 10 * day, "sub/deep/f.log": 10 * day, "sub/g.txt": 10 * day,
	}
	for _, c := range []struct {
		name  string
		table plugins.Table
		want  string
	}{
		{"by age", plugins.Table{"patterns": []any{"*.log"}, "older_than": "2d"},
			"c.log d.log future.log keep.txt sub/deep/f.log sub/e.log sub/g.txt"},
		{"by count", plugins.Table{"patterns": []any{"*.log"}, "max_count": int64(2)},
			"d.log future.log keep.txt sub/deep/f.log sub/e.log sub/g.txt"},
		{"by either", plugins.Table{"patterns": []any{"*.log"}, "max_count": int64(4), "older_than": "2d"},
			"c.log d.log future.log keep.txt sub/deep/f.log sub/e.log sub/g.txt"},
		{"folders in it too", plugins.Table{"patterns": []any{"*.log"}, "older_than": "2d", "recursive": true},
			"c.log d.log future.log keep.txt sub/g.txt"},
		{"by path", plugins.Table{"patterns": []any{"sub/*.log"}, "older_than": "2d", "recursive": true},
			".hidden.log a.log b.log c.log d.log future.log keep.txt sub/deep/f.log sub/g.txt"},
		{"several patterns", plugins.Table{"patterns": []any{"a.*", "keep.???"}, "older_than": "2d"},
			".hidden.log b.log c.log d.log future.log sub/deep/f.log sub/e.log sub/g.txt"},
		{"dry run", plugins.Table{"patterns": []any{"*"}, "older_than": "1s", "recursive": true, "dry_run": true},
			".hidden.log a.log b.log c.log d.log future.log keep.txt sub/deep/f.log sub/e.log sub/g.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tempDir(t)
			plant(t, dir, files)
			c.table["folders"] = []any{dir}
			gc := leadingCollector(t, c.table)
			for range 2 {
				if err := gc.collect(t.Context(), dir); err != nil {
					t.Fatal(err)
				}
				if have := left(t, dir); have != c.want {
					t.Errorf("\nhave %s\nwant %s", have, c.want)
				}
			}
		})
	}
}

func TestNothingBehindALinkIsRemoved(t *testing.T) {
	outside, dir := tempDir(t), tempDir(t)
	plant(t, outside, map[string]time.Duration{"precious.log": 10 * day})
	plant(t, dir, map[string]time.Duration{"sub/a.log": 10 * day})
	for name, target := range map[string]string{
		"folder": outside, "file.log": filepath.Join(outside, "precious.log"), "up": "..", "here": "sub", "dangling.log": "nothing",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	gc := leadingCollector(t, plugins.Table{"folders": []any{dir}, "patterns": []any{"*"}, "older_than": "1s", "recursive": true})
	if err := gc.collect(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if have, want := left(t, dir), "dangling.log file.log folder here up"; have != want {
		t.Errorf("have %s, want %s", have, want)
	}
	if have := left(t, outside); have != "precious.log" {
		t.Errorf("outside: have %q", have)
	}
	// A folder that became a link after it was configured.
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, dir); err != nil {
		t.Fatal(err)
	}
	if err := gc.collect(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "left alone") {
		t.Errorf("have %v", err)
	}
	if have := left(t, outside); have != "precious.log" {
		t.Errorf("outside: have %q", have)
	}
}

// A link anywhere on the way to a folder is refused, when it is configured and
// at each run; what is above the working directory is not judged.
func TestNoLinkOnTheWay(t *testing.T) {
	dir := tempDir(t)
	plant(t, dir, map[string]time.Duration{"w/real/d/1.log": 10 * day})
	if err := os.Symlink("real", filepath.Join(dir, "w/linkdir")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, dir+".link"); err != nil {
		t.Fatal(err)
	}
	table := func(folder string) plugins.Table {
		return plugins.Table{"folders": []any{folder}, "patterns": []any{"*"}, "older_than": "1s", "recursive": true}
	}
	t.Chdir(dir + ".link")
	for folder, link := range map[string]string{
		"./w/linkdir/d":                      `"w/linkdir" is a link`,
		"w/linkdir":                          `"w/linkdir" is a link`,
		filepath.Join(dir, "w/linkdir/d"):    `w/linkdir" is a link`,
		filepath.Join(dir+".link", "w/real"): `.link" is a link`,
	} {
		if _, err := readConfig(table(folder)); err == nil || !strings.Contains(err.Error(), link) {
			t.Errorf("configured %s: have %v, want %q", folder, err, link)
		}
		gc := leadingCollector(t, table(dir))
		if err := gc.collect(t.Context(), filepath.Clean(folder)); err == nil || !strings.Contains(err.Error(), link) {
			t.Errorf("run in %s: have %v, want %q", folder, err, link)
		}
		for _, open := range []func(string) (*os.Root, error){openPlain, walkPlain} {
			if root, err := open(filepath.Clean(folder)); err == nil {
				root.Close()
				t.Errorf("%s is opened", folder)
			}
		}
	}
	if have := left(t, filepath.Join(dir, "w/real")); have != "d/1.log" {
		t.Fatalf("have %q", have)
	}
	gc := leadingCollector(t, table("./w/real/d"))
	if err := gc.collect(t.Context(), gc.conf.Folders[0]); err != nil {
		t.Fatal(err)
	}
	if have := left(t, filepath.Join(dir, "w/real")); have != "" {
		t.Errorf("have %q", have)
	}
	for _, folder := range []string{"w/real", "../" + filepath.Base(dir) + "/w", ".", dir} {
		for _, open := range []func(string) (*os.Root, error){openPlain, walkPlain} {
			if root, err := open(folder); err != nil {
				t.Errorf("%s: %v", folder, err)
			} else {
				root.Close()
			}
		}
	}
}

// A component of the path changes between folder and link all the time.
func TestComponentThatFlips(t *testing.T) {
	outside, dir := tempDir(t), tempDir(t)
	plant(t, outside, map[string]time.Duration{"d/precious.log": 10 * day})
	plant(t, dir, map[string]time.Duration{"mid/d/a.log": 10 * day})
	mid := filepath.Join(dir, "mid")
	gc := leadingCollector(t, plugins.Table{"folders": []any{filepath.Join(mid, "d")}, "patterns": []any{"*"}, "older_than": "1s", "recursive": true})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(mid, mid+".away")
			os.Symlink(outside, mid)
			os.Remove(mid)
			os.Rename(mid+".away", mid)
		}
	}()
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		_ = gc.collect(t.Context(), filepath.Join(mid, "d")) // refused, or nothing there, or done
		if root, err := walkPlain(filepath.Join(mid, "d")); err == nil {
			if _, err := root.Stat("precious.log"); err == nil {
				t.Error("the walk followed the link")
			}
			root.Close()
		}
	}
	close(stop)
	<-done
	if have := left(t, outside); have != "d/precious.log" {
		t.Errorf("outside: have %q", have)
	}
}

// What is not as it was when it was judged is not removed.
func TestChangedSinceItWasJudged(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir, outside string){
		"written to": func(t *testing.T, dir, _ string) {
			if err := os.WriteFile(filepath.Join(dir, "sub/a.log"), []byte("new"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"replaced": func(t *testing.T, dir, _ string) {
			p := filepath.Join(dir, "sub/a.log")
			info, _ := os.Stat(p)
			if err := os.WriteFile(p+".new", []byte("sub/a.log"), 0o644); err != nil {
				t.Fatal(err)
			}
			os.Chtimes(p+".new", info.ModTime(), info.ModTime())
			if err := os.Rename(p+".new", p); err != nil {
				t.Fatal(err)
			}
		},
		"folder became a link": func(t *testing.T, dir, outside string) {
			if err := os.Rename(filepath.Join(dir, "sub"), filepath.Join(outside, "sub")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(outside, "sub"), filepath.Join(dir, "sub")); err != nil {
				t.Fatal(err)
			}
		},
		"folder became a link within": func(t *testing.T, dir, _ string) {
			if err := os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "other")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("other", filepath.Join(dir, "sub")); err != nil {
				t.Fatal(err)
			}
		},
		"gone": func(t *testing.T, dir, _ string) { os.RemoveAll(filepath.Join(dir, "sub")) },
	} {
		t.Run(name, func(t *testing.T) {
			outside, dir := tempDir(t), tempDir(t)
			plant(t, dir, map[string]time.Duration{"sub/a.log": 10 * day})
			gc := leadingCollector(t, plugins.Table{"folders": []any{dir}, "patterns": []any{"*"}, "older_than": "1s", "recursive": true})
			root, err := openFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			list, err := gc.conf.find(t.Context(), root, time.Now())
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			change(t, dir, outside)
			if removed, err := gc.remove(root, list[0]); removed || err != nil {
				t.Errorf("removed %v, %v", removed, err)
			}
		})
	}
}

func TestNothingIsRemovedWithoutLeading(t *testing.T) {
	dir := tempDir(t)
	plant(t, dir, map[string]time.Duration{"a.log": 10 * day})
	gc := newCollector()
	if err := gc.Configure(t.Context(), plugins.Table{"folders": []any{dir}, "patterns": []any{"*"}, "older_than": "1s"}); err != nil {
		t.Fatal(err)
	}
	if err := gc.collect(t.Context(), dir); err == nil {
		t.Error("no error")
	}
	if have := left(t, dir); have != "a.log" {
		t.Errorf("have %q", have)
	}
}

func TestRunsWhileLeading(t *testing.T) {
	dir := tempDir(t)
	gc := newCollector()
	if err := gc.Configure(t.Context(), plugins.Table{"folders": []any{dir, dir + ".later"}, "patterns": []any{"*"}, "older_than": "1s", "every": "100ms"}); err != nil {
		t.Fatal(err)
	}
	tr := plugins.Transition{Role: "kv", Token: role.MakeToken(1, 1)}
	if err := gc.OnPromote(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		plant(t, dir, map[string]time.Duration{"a.log": day})
		eventually.Holds(t, "everything is removed", func() bool { return left(t, dir) == "" })
	}
	if err := gc.OnDemote(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	plant(t, dir, map[string]time.Duration{"a.log": day})
	time.Sleep(300 * time.Millisecond) // three times every
	if have := left(t, dir); have != "a.log" {
		t.Error("removed after OnDemote")
	}
}

func TestConfigErrors(t *testing.T) {
	dir := tempDir(t)
	plant(t, dir, map[string]time.Duration{"file": 0})
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	good := func(change plugins.Table) plugins.Table {
		table := plugins.Table{"folders": []any{dir}, "patterns": []any{"*.log"}, "older_than": "7d"}
		for k, v := range change {
			if v == nil {
				delete(table, k)
			} else {
				table[k] = v
			}
		}
		return table
	}
	if c, err := readConfig(good(nil)); err != nil || c.OlderThan != 7*day || c.Every != 10*time.Minute {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, c := range []struct {
		change plugins.Table
		want   string
	}{
		{plugins.Table{"folders": nil}, `"folders" is missing`},
		{plugins.Table{"patterns": nil}, `"patterns" is missing`},
		{plugins.Table{"older_than": nil}, `needs "older_than" or "max_count"`},
		{plugins.Table{"older_than": "0s"}, `must be positive`},
		{plugins.Table{"older_than": "week"}, `is no duration`},
		{plugins.Table{"max_count": int64(0)}, `must be positive`},
		{plugins.Table{"every": "1ms"}, `too short`},
		{plugins.Table{"evry": "1m"}, `did you mean "every"?`},
		{plugins.Table{"folder": []any{"x"}}, `did you mean "folders"?`},
		{plugins.Table{"folders": []any{"/"}}, `refusing`},
		{plugins.Table{"folders": []any{""}}, `"folders[0]" is empty`},
		{plugins.Table{"folders": []any{link}}, `is a link`},
		{plugins.Table{"folders": []any{filepath.Join(dir, "file")}}, `is not a folder`},
		{plugins.Table{"patterns": []any{"["}}, `is no pattern`},
		{plugins.Table{"patterns": []any{""}}, `"patterns[0]" is empty`},
		{plugins.Table{"patterns": []any{"../*"}, "recursive": true}, `would leave the folder`},
		{plugins.Table{"patterns": []any{"/etc/*"}, "recursive": true}, `would leave the folder`},
		{plugins.Table{"patterns": []any{"sub/*"}}, `needs recursive`},
	} {
		if _, err := readConfig(good(c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: have %v, want %q", c.change, err, c.want)
		}
	}
}
