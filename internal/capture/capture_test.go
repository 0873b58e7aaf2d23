//go:build unix

package capture

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestMain lets the test binary play a worker that prints.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "print" {
		n, _ := strconv.Atoi(os.Args[2])
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		os.Stdout.Write(b.Bytes())
		fmt.Fprint(os.Stderr, "last words")
		os.Exit(3)
	}
	if len(os.Args) == 2 && os.Args[1] == "spew" {
		b := bytes.Repeat([]byte("a line of some length that is printed again and again\n"), 1000)
		for {
			if _, err := os.Stdout.Write(b); err != nil {
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

type rig struct {
	t         *testing.T
	fifo, log string
	c         *Capture
	w         *os.File
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, fifo: filepath.Join(dir, "0.fifo"), log: filepath.Join(dir, "logs", "kv-0.log")}
	if err := MakeFIFO(r.fifo, -1, -1); err != nil {
		t.Fatal(err)
	}
	r.start(o)
	var err error
	if r.w, err = OpenWriter(r.fifo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.w.Close() })
	return r
}

func (r *rig) start(o Options) {
	r.t.Helper()
	var err error
	if r.c, err = Start(r.fifo, r.log, o); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.c.Close() })
}

func (r *rig) print(text string) {
	r.t.Helper()
	if _, err := r.w.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
}

var stamped = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z `)

// lines reads a log without its times.
func (r *rig) lines(path string) []string {
	r.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for l := range strings.Lines(string(b)) {
		if !stamped.MatchString(l) || !strings.HasSuffix(l, "\n") {
			r.t.Fatalf("%s has the line %q", path, l)
		}
		out = append(out, strings.TrimSuffix(stamped.ReplaceAllString(l, ""), "\n"))
	}
	return out
}

func (r *rig) want(want ...string) {
	r.t.Helper()
	if got := r.lines(r.log); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		r.t.Fatalf("the log has %.500q, want %.500q", got, want)
	}
}

func TestLinesNotesAndAPartialLine(t *testing.T) {
	r := newRig(t, Options{})
	fi, err := os.Lstat(r.fifo)
	if err != nil || fi.Mode() != os.ModeNamedPipe|0o600 {
		t.Errorf("the FIFO is %v, %v", fi.Mode(), err)
	}
	r.print("one\r\n\ntwo\nthr")
	r.c.Drain()
	r.want("one", "", "two", "thr")
	r.c.Note("kv-0 exited\nwith status 3")
	r.print("four\n")
	r.c.Drain()
	r.want("one", "", "two", "thr", "standbyd: kv-0 exited with status 3", "four")
	if got := fmt.Sprintf("%q", r.c.Tail(2)); got != `["standbyd: kv-0 exited with status 3" "four"]` {
		t.Errorf("Tail is %s", got)
	}
	if got := len(r.c.Tail(1000)); got != 6 {
		t.Errorf("Tail has %d lines, want 6", got)
	}
	if r.c.Dropped() != 0 {
		t.Errorf("%d lines dropped", r.c.Dropped())
	}
}

func TestLongLinesAreSplitBetweenCharacters(t *testing.T) {
	r := newRig(t, Options{})
	long := "x" + strings.Repeat("ä", maxLine) // twice maxLine bytes
	r.print(long + "\n" + strings.Repeat("y", maxLine) + "\nend\n")
	r.c.Drain()
	got := r.lines(r.log)
	if len(got) != 4 || strings.Join(got[:2], "") != long || len(got[2]) != maxLine || got[3] != "end" {
		t.Fatalf("%d lines, %d bytes in the first", len(got), len(got[0]))
	}
	for i, l := range got[:2] {
		if strings.ContainsRune(l, '\uFFFD') || strings.ToValidUTF8(l, "?") != l {
			t.Errorf("piece %d is cut inside a character", i)
		}
	}
}

// TestLastWordsAreKept: a worker prints 10,000 lines and ends at once.
func TestLastWordsAreKept(t *testing.T) {
	r := newRig(t, Options{MaxBytes: 64 << 20})
	const rounds, each = 8, 10000
	for range rounds {
		cmd := exec.Command(os.Args[0], "print", strconv.Itoa(each))
		cmd.Stdout, cmd.Stderr = r.w, r.w
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 3 {
			t.Fatal(err)
		}
		r.c.Drain()
	}
	got := r.lines(r.log)
	if len(got) != rounds*(each+1) {
		t.Fatalf("%d lines, want %d; %d dropped", len(got), rounds*(each+1), r.c.Dropped())
	}
	for i, l := range got {
		want := fmt.Sprintf("line %d", i%(each+1))
		if i%(each+1) == each {
			want = "last words"
		}
		if l != want {
			t.Fatalf("line %d is %q, want %q", i, l, want)
		}
	}
}

func TestRotation(t *testing.T) {
	r := newRig(t, Options{MaxBytes: 2000, Keep: 3})
	var all []string
	for i := range 200 {
		all = append(all, fmt.Sprintf("line %03d", i))
		r.print(all[i] + "\n")
		if i%7 == 0 {
			r.c.Drain()
		}
	}
	r.c.Drain()
	var got []string
	for i := 3; i >= 0; i-- {
		fi, err := os.Stat(rotated(r.log, i))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Size() > 2000 || fi.Size() == 0 {
			t.Errorf("%s has %d bytes", fi.Name(), fi.Size())
		}
		got = append(got, r.lines(rotated(r.log, i))...)
	}
	if _, err := os.Stat(rotated(r.log, 4)); err == nil {
		t.Error("one file too many is kept")
	}
	if strings.Join(got, ",") != strings.Join(all[len(all)-len(got):], ",") {
		t.Errorf("lines are lost or out of order: %q", got)
	}
}

func TestDeletedAndMovedLogs(t *testing.T) {
	r := newRig(t, Options{})
	r.print("one\n")
	r.c.Drain()
	if err := os.RemoveAll(filepath.Dir(r.log)); err != nil {
		t.Fatal(err)
	}
	r.print("two\n")
	r.c.Drain()
	r.want("two")
	if err := os.Rename(r.log, r.log+".moved"); err != nil {
		t.Fatal(err)
	}
	r.print("three\n")
	r.c.Drain()
	r.want("three")
	// An idle capture does not pin the space of a deleted file.
	if err := os.Remove(r.log); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the deleted file is closed", func() bool { return !holdsDeleted(t, r.log) })
}

func holdsDeleted(t *testing.T, path string) bool {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	for _, n := range names {
		if to, _ := os.Readlink("/proc/self/fd/" + n.Name()); to == path+" (deleted)" {
			return true
		}
	}
	return false
}

// TestUnwritableLog: the worker goes on, lines are counted, and the log says so
// when it is well again.
func TestUnwritableLog(t *testing.T) {
	r := newRig(t, Options{})
	if err := os.RemoveAll(filepath.Dir(r.log)); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(r.log), nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	r.print("one\ntwo\n")
	r.c.Drain()
	if r.c.Dropped() != 2 {
		t.Errorf("%d dropped, want 2", r.c.Dropped())
	}
	if got := fmt.Sprint(r.c.Tail(5)); got != "[one two]" {
		t.Errorf("Tail is %s", got)
	}
	if err := os.Remove(filepath.Dir(r.log)); err != nil {
		t.Fatal(err)
	}
	r.print("three\n")
	r.c.Drain()
	got := r.lines(r.log)
	if len(got) != 2 || !strings.HasPrefix(got[0], "standbyd: 2 lines dropped: ") || got[1] != "three" {
		t.Errorf("the log has %q", got)
	}
}

// TestSlowDiskNeverStopsTheWorker: the log is a FIFO that takes nothing; more
// than all buffers together must go through.
func TestSlowDiskNeverStopsTheWorker(t *testing.T) {
	q := newQueue()
	line := bytes.Repeat([]byte("x"), 1000)
	start := time.Now()
	kept := 0
	for range 100 * queueBytes / len(line) {
		if q.add(stampOf(start), "", line) {
			kept++
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("a disk that hangs held the reader up for %v", took)
	}
	if kept == 0 || kept > queueBytes/len(line) {
		t.Errorf("%d lines kept", kept)
	}
	b := q.take(nil)
	if int(b.lines) != kept || int(b.lost) != 100*queueBytes/len(line)-kept {
		t.Errorf("taken %d lines and %d lost, kept %d", b.lines, b.lost, kept)
	}
	if !q.add(stampOf(start), "", line) {
		t.Error("there is room again, but the line was dropped")
	}
}

// TestWorkerOutlivesTheReader: no SIGPIPE without a supervisor, and what was
// printed meanwhile is in the log of the next one.
func TestWorkerOutlivesTheReader(t *testing.T) {
	r := newRig(t, Options{})
	r.print("one\n")
	if err := r.c.Close(); err != nil {
		t.Fatal(err)
	}
	r.print("two\n")
	r.print("three\n")
	if err := MakeFIFO(r.fifo, -1, -1); err != nil { // as the next supervisor does
		t.Fatal(err)
	}
	r.start(Options{})
	r.c.Drain()
	r.want("one", "two", "three")
}

func TestDrainEndsWhileOthersSpew(t *testing.T) {
	r := newRig(t, Options{MaxBytes: 1 << 20, Keep: 1})
	cmd := exec.Command(os.Args[0], "spew")
	cmd.Stdout = r.w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5 {
			r.c.Drain()
		}
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("Drain does not end")
	}
}

func TestPathsInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MakeFIFO(path, -1, -1); err == nil {
		t.Error("MakeFIFO took a plain file for a FIFO")
	}
	if _, err := OpenWriter(path); err == nil {
		t.Error("OpenWriter opened a plain file")
	}
	if _, err := Start(path, path+".log", Options{}); err == nil {
		t.Error("Start read a plain file")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file reads %q", b)
	}
}

func TestTornLineOfACrash(t *testing.T) {
	r := newRig(t, Options{})
	r.print("before\n")
	r.c.Close()
	if err := os.WriteFile(r.log, []byte("2026-01-02T15:04:05.000000Z torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start(Options{})
	r.print("next\n")
	r.c.Drain()
	r.want("torn", "next")
}

func TestNoGoroutinesOrFilesLeak(t *testing.T) {
	r := newRig(t, Options{})
	r.c.Close()
	before := openFDs(t)
	for range 50 {
		r.start(Options{})
		r.print("x\n")
		if err := r.c.Close(); err != nil {
			t.Fatal(err)
		}
		r.c.Drain() // after Close: returns
		r.c.Note("too late")
	}
	if after := openFDs(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
