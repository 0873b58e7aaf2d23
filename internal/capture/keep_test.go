//go:build unix

package capture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

func TestPrintOptions(t *testing.T) {
	log := filepath.Join(t.TempDir(), "kv-0.log")
	write(t, log, at(1, "one"), at(2, `{"level":"info","n":1}`), at(3, "bad \x1b[31m\xff\tword"), at(4, "four"))
	show := func(o PrintOptions) string {
		t.Helper()
		var p pages
		if err := Print(context.Background(), &p, []Source{{Name: "kv-0", File: log, Role: "kv"}}, o); err != nil {
			t.Fatal(err)
		}
		return p.text()
	}
	since := time.Date(2026, 1, 2, 3, 0, 3, 0, time.UTC)
	if got := show(PrintOptions{Lines: -1, Since: since}); got != at(3, "bad \x1b[31m\xff\tword")+at(4, "four") {
		t.Errorf("since: %q", got)
	}
	if got := show(PrintOptions{Lines: 1, Grep: regexp.MustCompile("^o|level")}); got != at(2, `{"level":"info","n":1}`) {
		t.Errorf("grep: %q", got)
	}
	if got := show(PrintOptions{Lines: 2, Escape: true}); !strings.HasPrefix(got, at(3, `bad \x1b[31m\xff`+"\tword")) {
		t.Errorf("escape: %q", got)
	}
	want := `{"time":"2026-01-02T03:00:01.000000Z","role":"kv","worker":"kv-0","text":"one"}` + "\n" +
		`{"time":"2026-01-02T03:00:02.000000Z","role":"kv","worker":"kv-0","object":{"level":"info","n":1}}` + "\n"
	if got := show(PrintOptions{Lines: 4, JSON: true}); !strings.HasPrefix(got, want) {
		t.Errorf("JSON: %s", got)
	}
}

// TestRotatedLogsAreCompressed, and read as if they were not.
func TestRotatedLogsAreCompressed(t *testing.T) {
	r := newRig(t, Options{MaxBytes: 400, Keep: 3, Compress: true})
	for range 40 {
		r.print("a line of some length\n")
	}
	r.c.Drain()
	all := printed(t, []Source{{Name: "kv-0", File: r.log}}, -1)
	eventually.Holds(t, "they are compressed", func() bool { n, _ := filepath.Glob(r.log + ".?.gz"); return len(n) == 3 })
	for _, n := range []int{-1, 3, 25} {
		lines := strings.SplitAfter(all, "\n")
		lines = lines[:len(lines)-1]
		want := all
		if n >= 0 {
			want = strings.Join(lines[max(0, len(lines)-n):], "")
		}
		if got := printed(t, []Source{{Name: "kv-0", File: r.log}}, n); got != want {
			t.Errorf("last %d: %q, want %q", n, got, want)
		}
	}
}

func TestRotationByAge(t *testing.T) {
	r := newRig(t, Options{})
	r.print("young\n")
	r.c.Close()
	if err := os.WriteFile(r.log, []byte(at(1, "old")), 0o600); err != nil { // of January 2026
		t.Fatal(err)
	}
	r.start(Options{Keep: 2, MaxAge: time.Minute})
	r.print("new\n")
	r.c.Drain()
	r.want("new")
	if got := r.lines(rotated(r.log, 1)); len(got) != 1 || got[0] != "old" {
		t.Errorf("the rotated file has %q", got)
	}
}

// TestAddAfterClose: a FIFO that comes too late does not hold up the end.
func TestAddAfterClose(t *testing.T) {
	r := newRig(t, Options{})
	r.c.Close()
	f, err := Open(r.fifo)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.c.Add(f, nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Add after Close: %v", err)
	}
	other, err := Start(r.fifo, r.log, Options{})
	if err != nil {
		t.Fatalf("the FIFO is still locked: %v", err)
	}
	other.Close()
}
