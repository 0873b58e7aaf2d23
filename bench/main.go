// Command bench measures the primitives under coord beside what programs use
// instead, in one run: each round measures an operation and its reference by
// turns, and what is reported is their ratio. See docs/benchmarks.md, which it
// writes.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/standbyd/standbyd/bench/page"
)

func main() {
	if op := os.Getenv(childOp); op != "" {
		if err := child(op); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	out := flag.String("o", "", "write the report to its part of this `file` too")
	rounds := flag.Int("rounds", 31, "rounds for each operation alone; a third of them for several processes")
	only := flag.String("run", "", "measure only operations whose name contains this `text`")
	loop := flag.Int("loop", 0, "do not measure: run each operation this many `times`, for a profiler")
	flag.Parse()
	if err := run(*out, *rounds, *only, *loop); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(out string, rounds int, only string, loop int) error {
	dir, err := os.MkdirTemp(memoryFolder(), "standbyd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	runtime.LockOSThread()
	debug.SetGCPercent(-1) // nothing that is measured allocates; the report says so
	before := page.Describe()
	t := &tables{dir: dir, rounds: rounds, only: only}
	if err := t.open(); err != nil {
		return err
	}
	defer t.close()
	if loop > 0 {
		return t.loop(loop)
	}
	alone, err := t.alone()
	if err != nil {
		return err
	}
	quiet, err := t.readers()
	if err != nil {
		return err
	}
	crowd, err := t.contended()
	if err != nil {
		return err
	}
	w := io.Writer(os.Stdout)
	var b strings.Builder
	if out != "" {
		w = io.MultiWriter(os.Stdout, &b)
	}
	report(w, before, page.Describe(), t, alone, quiet, crowd)
	if out != "" {
		return page.Update(out, "bench", b.String())
	}
	return nil
}

// memoryFolder is a folder in memory, "" if this system has none that is known.
func memoryFolder() string {
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// tables is one run: the segments and what was skipped.
type tables struct {
	dir     string
	rounds  int
	only    string
	skipped []string
	*rig
}

func (t *tables) path(name string) string { return filepath.Join(t.dir, name) }

func (t *tables) skip(what string, why error) {
	t.skipped = append(t.skipped, fmt.Sprintf("%s: %v", what, why))
}

func (t *tables) wanted(name string) bool { return strings.Contains(name, t.only) }
