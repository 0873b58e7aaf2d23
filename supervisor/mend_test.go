package supervisor

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestRemovedFiles: what is removed from a role's folder one by one is made
// again, at the start of a worker at the latest, and what a worker prints
// there gets into its log.
func TestRemovedFiles(t *testing.T) {
	c := newConfig(t, "exit")
	c.Roles[0].RestartMaxDelay = c.Roles[0].RestartDelay
	w := start(t, c)
	paths := w.sup.role("kv").paths
	restarts := func(r RoleStatus) int { return r.Workers[0].Restarts }
	before := w.until("it was started again", func(r RoleStatus) bool { return restarts(r) > 1 })
	for _, path := range []string{paths.fifo(0), paths.socket(), paths.workers()} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	after := w.until("it was started twice more", func(r RoleStatus) bool { return restarts(r) > restarts(before)+2 })
	if exit := after.Workers[0].LastExit; exit == nil || strings.Join(exit.LastLines, "") != "last words" {
		t.Errorf("the last exit: %+v", exit)
	}
	for path, kind := range map[string]os.FileMode{paths.fifo(0): os.ModeNamedPipe, paths.socket(): os.ModeSocket, paths.workers(): 0} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

// TestRemovedFilesOfAQuietRole: nobody has to start for that.
func TestRemovedFilesOfAQuietRole(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	before := w.until("the role is full", full)
	paths := w.sup.role("kv").paths
	gone := []string{paths.fifo(0), paths.fifo(1), paths.socket(), paths.workers()}
	for _, path := range gone {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range gone {
		eventually.Holds(t, path+" is there", func() bool { return !missing(path) })
	}
	syscall.Kill(before.LeaderPID, syscall.SIGKILL)
	w.until("the role is full again", func(r RoleStatus) bool { return full(r) && r.Term > before.Term })
}

// TestRemovedListener: it is shown until stop and start have bound it again.
func TestRemovedListener(t *testing.T) {
	c := newConfig(t, "good")
	path := filepath.Join(filepath.Dir(c.StateDir), "web.sock")
	c.Roles[0].Listen = []ListenConfig{{Name: "web", Address: path}}
	w := start(t, c)
	w.until("the role is full", full)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.untilWarned("`standbyd start kv` bind it again")
	if _, err := w.sup.Stop(context.Background(), "kv"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sup.Start(context.Background(), "kv"); err != nil {
		t.Fatal(err)
	}
	w.until("the role is full", full)
	w.untilNotes("no warning", func(all []string) bool { return len(all) == 0 })
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
