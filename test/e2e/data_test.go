//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// ended runs the role, ends it in order, and leaves data of that generation.
func (d *daemon) ended() {
	d.t.Helper()
	d.start()
	d.whole("kv")
	l := write(d.t, d.url, 1)
	l.more(3)
	l.close()
	if state := d.end(syscall.SIGTERM); state.ExitCode() != 0 {
		d.t.Fatalf("standbyd ended with %v", state)
	}
}

// refuses waits until every worker has ended for the reason that its log has.
func (d *daemon) refuses(reason ...string) {
	d.t.Helper()
	d.start()
	eventually.Shows(d.t, fmt.Sprintf("the workers end and say %q", reason), func() (bool, string) {
		r := d.role("kv")
		ended := 0
		for _, w := range r.Workers {
			if w.LastExit != nil && w.LastExit.Code != nil && *w.LastExit.Code == 1 {
				ended++
			}
		}
		out, _ := d.try("logs", "kv", "-n", "50")
		ok := ended == len(r.Workers)
		for _, part := range reason {
			ok = ok && strings.Contains(out, part)
		}
		return ok, fmt.Sprintf("%+v\n%s", r, out)
	})
}

// Damage in what was acknowledged stops the workers; it is not skipped.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	d := configure(t, storeConfig(""))
	d.ended()
	d.ended() // the next leader counts the first one's journal
	journals, err := filepath.Glob(filepath.Join(d.dir, "data/journal-*"))
	if err != nil || len(journals) != 2 {
		t.Fatalf("journals: %v %v", journals, err)
	}
	whole, err := os.ReadFile(journals[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)-20] ^= 1
	if err := os.WriteFile(journals[0], damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	d.refuses("damaged", filepath.Base(journals[0]), "at byte")
	d.end(syscall.SIGTERM)
	if err := os.WriteFile(journals[0], whole, 0o644); err != nil {
		t.Fatal(err)
	}
	d.ended()
}

// Without the state folder tokens begin anew. The store does not take that for
// the successor of what it has.
func TestLostStateFolder(t *testing.T) {
	t.Parallel()
	d := configure(t, storeConfig(""))
	d.ended()
	d.ended()
	state := filepath.Join(d.dir, "state")
	if err := os.Rename(state, state+".kept"); err != nil {
		t.Fatal(err)
	}
	d.refuses("ahead of the role's tokens", "state folder removed")
	d.end(syscall.SIGTERM)
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(state+".kept", state); err != nil {
		t.Fatal(err)
	}
	d.ended()
}
