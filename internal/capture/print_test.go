//go:build unix

package capture

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// pages collects what Print writes.
type pages struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *pages) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

func write(t *testing.T, path string, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "")); err != nil {
		t.Fatal(err)
	}
}

// at is a log line of second s.
func at(s int, text string) string {
	return string(appendLine(nil, stampOf(time.Date(2026, 1, 2, 3, 0, s, 0, time.UTC)), "", []byte(text)))
}

func printed(t *testing.T, sources []Source, n int) string {
	t.Helper()
	var p pages
	if err := Print(context.Background(), &p, sources, PrintOptions{Lines: n}); err != nil {
		t.Fatal(err)
	}
	return p.text()
}

func TestPrintTail(t *testing.T) {
	log := filepath.Join(t.TempDir(), "kv-0.log")
	src := []Source{{Name: "kv-0", File: log}}
	if got := printed(t, src, 10); got != "" {
		t.Errorf("a log that does not exist prints %q", got)
	}
	write(t, log+".2", at(1, "a"), at(2, "b"))
	write(t, log+".1", at(3, "c"), at(4, strings.Repeat("d", 3*blockBytes)))
	write(t, log, at(5, "e"), at(6, "f"), "2026-01-02T03:00:07.000000Z not yet wh")
	all := at(1, "a") + at(2, "b") + at(3, "c") + at(4, strings.Repeat("d", 3*blockBytes)) + at(5, "e") + at(6, "f")
	for n := range 8 {
		lines := strings.SplitAfter(strings.TrimSuffix(all, "\n"), "\n")
		lines[len(lines)-1] += "\n"
		want := strings.Join(lines[max(0, len(lines)-n):], "")
		if got := printed(t, src, n); got != want {
			t.Errorf("last %d: %.200q, want %.200q", n, got, want)
		}
	}
	if got := printed(t, src, -1); got != all {
		t.Errorf("all: %.200q", got)
	}
}

func TestPrintMergesByTime(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, at(1, "a1"), at(4, "a4"))
	write(t, b, at(2, "b2"), at(3, "b3"), at(5, "b5"))
	got := printed(t, []Source{{Name: "kv-0", File: a}, {Name: "kv-10", File: b}}, 4)
	want := "kv-10 | " + at(2, "b2") + "kv-10 | " + at(3, "b3") + "kv-0  | " + at(4, "a4") + "kv-10 | " + at(5, "b5")
	if got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}

// TestPrintFollowsOverRotation: many rotations while it follows, and no line is
// lost, doubled or out of order.
func TestPrintFollowsOverRotation(t *testing.T) {
	r := newRig(t, Options{MaxBytes: 3000, Keep: 200, Compress: true})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var p pages
	done := make(chan error, 1)
	go func() {
		done <- Print(ctx, &p, []Source{{Name: "kv-0", File: r.log}}, PrintOptions{Lines: -1, Follow: true})
	}()
	const n = 2000
	var want strings.Builder
	for i := range n {
		l := fmt.Sprintf("line %d\n", i)
		want.WriteString(l)
		r.print(l)
		if i%20 == 0 {
			r.c.Drain()
			time.Sleep(5 * time.Millisecond) // spread over several looks of Print
		}
	}
	r.c.Drain()
	last := fmt.Sprintf("line %d\n", n-1)
	eventually.Shows(t, "the last line comes", func() (bool, string) {
		text := p.text()
		return strings.HasSuffix(text, last), fmt.Sprintf("%.300q", text)
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for l := range strings.Lines(p.text()) {
		got.WriteString(l[len(stampLayout)+1:])
	}
	if got.String() != want.String() {
		gl, wl := strings.Split(got.String(), "\n"), strings.Split(want.String(), "\n")
		for i := range wl {
			if i >= len(gl) || gl[i] != wl[i] {
				t.Fatalf("printed %d lines, want %d; the first that differs is %d: %q", len(gl), len(wl), i, gl[min(i, len(gl)-1)])
			}
		}
	}
}

// TestPrintFollowsADeletedLog: older files are not shown again.
func TestPrintFollowsADeletedLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "kv-0.log")
	write(t, log+".1", at(1, "old"))
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(log+".1", long, long); err != nil {
		t.Fatal(err)
	}
	write(t, log, at(2, "new"))
	f := &follower{source: Source{Name: "kv-0", File: log}}
	defer f.close()
	if lines, err := f.last(1); err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if lines, err := f.next(); err != nil || len(lines) != 0 {
			t.Fatal(lines, err)
		}
	}
	write(t, log, at(3, "again"))
	if lines, err := f.next(); err != nil || len(lines) != 1 || lines[0].text+"\n" != at(3, "again") {
		t.Fatal(lines, err)
	}
}
