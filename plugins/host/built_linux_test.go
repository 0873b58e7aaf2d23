//go:build linux

package host

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/test/eventually"
)

// The programs as a user builds them.

func TestHelloPlugin(t *testing.T) {
	bin := build(t, "examples/plugin")
	s := raiseUp(t, Config{Name: "hello", Command: []string{bin}})
	_, tr := segment(t, 1)
	if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	s.printed("hello: kv-0 leads kv with token 1.1 (first)")
	s.printed("hello: hello from the leader's side")
	if err := s.hooks.OnDemote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	s.printed("hello: kv-0 leads no more")
}

// A snapshot that is killed in the middle of its copy leaves nothing that
// looks like one, and the next process clears up and makes a whole one.
func TestSnapshotKilledWhileItCopies(t *testing.T) {
	bin := build(t, "plugins/snapshot")
	root := t.TempDir()
	source, dir := filepath.Join(root, "data"), filepath.Join(root, "snapshots")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "big"), make([]byte, 128<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s := raiseUp(t, Config{Name: "snapshot", Command: []string{bin}, Table: map[string]any{"source": source, "dir": dir, "every": "1h"}})
	_, tr := segment(t, 1)
	if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	entries := func(prefix string) []string {
		list, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
		return list
	}
	eventually.Holds(t, "a copy has begun", func() bool { return len(entries(".building-")) > 0 })
	if err := syscall.Kill(s.hooks.Status().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.replay
	if whole, half := entries("snapshot-"), entries(".building-"); len(whole) != 0 || len(half) != 1 {
		t.Fatalf("whole %v, half %v", whole, half)
	}
	again := tr
	again.Reason = role.ReasonAdopted
	if err := retry(t, func() error { return s.hooks.OnPromote(within(t, limit), again) }); err != nil {
		t.Fatal(err)
	}
	s.printed("removed the unfinished .building-snapshot-")
	s.printed("1 files, 134217728 bytes")
	if whole, half := entries("snapshot-"), entries(".building-"); len(whole) != 1 || len(half) != 0 || !strings.HasSuffix(whole[0], "-1.1") {
		t.Errorf("whole %v, half %v", whole, half)
	}
}

func TestConfigOfTheRealPluginsIsChecked(t *testing.T) {
	bin := build(t, "plugins/gc")
	err := Check(within(t, limit), Config{Name: "gc", Command: []string{bin}, Table: map[string]any{"folders": []any{"/tmp/x"}, "paterns": []any{"*"}, "older_than": "7d"}})
	if err == nil || !strings.Contains(err.Error(), `check plugin gc: config key "paterns" is unknown; did you mean "patterns"?`) {
		t.Errorf("have %v", err)
	}
}
