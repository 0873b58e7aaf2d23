//go:build linux

// Command failover measures how long a role is without a leader: standbyd and
// package coord beside what programs use instead, the same worker, the same
// probe, in one run. See docs/benchmarks.md, to which it writes its part.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/bench/page"
)

var (
	self     string // this program, which also plays the workers
	standbyd string // "" if there is none
)

func main() {
	var err error
	if self, err = os.Executable(); err != nil {
		fail(err)
	}
	if part := os.Getenv(partEnv); part != "" {
		if err := worker(part); err != nil && !errors.Is(err, context.Canceled) {
			fail(err)
		}
		return
	}
	// Who is started here ends with the thread that started it, so that one is
	// never to end before this process does.
	runtime.LockOSThread()
	o := options{}
	flag.StringVar(&o.out, "o", "", "write the report to its part of this `file` too, and the plot beside it")
	flag.StringVar(&o.samples, "samples", "", "count in the samples that are in this `file` from earlier runs, and add this run's")
	flag.StringVar(&o.only, "run", "", "measure only what this `regexp` finds in \"SCENARIO: WAY\"")
	flag.BoolVar(&o.full, "full", os.Getenv("FULL") == "1", "measure everything; takes three quarters of an hour. FULL=1 says the same")
	flag.Float64Var(&o.times, "times", 1, "as many rounds, `times` this")
	flag.IntVar(&o.blocks, "blocks", 2, "go through most of it this many `times`, with that part of the rounds each")
	flag.DurationVar(&o.each, "each", 2500*time.Millisecond, "the `time` of a row's rounds in one pass; seven are made whatever they take")
	bin := flag.String("standbyd", "bin/standbyd", "the standbyd to measure")
	flag.Parse()
	if standbyd, err = filepath.Abs(*bin); err == nil {
		if _, err = os.Stat(standbyd); err != nil {
			standbyd = ""
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench-failover:", err)
	os.Exit(1)
}

type options struct {
	out, samples, only string
	full               bool
	times              float64
	blocks             int
	each               time.Duration
}

// bench is one run.
type bench struct {
	dir     string
	each    time.Duration
	results results
	failed  bool
}

func (b *bench) noted(scenario, row, note string) { b.results.of(scenario, row).Note = note }

func run(ctx context.Context, o options) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	b := &bench{results: results{}}
	began := page.Describe()
	if o.samples != "" {
		if began, err = b.results.load(o.samples, began); err != nil {
			return err
		}
	}
	memory := ""
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		memory = "/dev/shm"
	}
	// Sockets below it have paths, and those must be short.
	if b.dir, err = os.MkdirTemp(memory, "fo"); err != nil {
		return err
	}
	tools = b.dir
	defer func() {
		if !b.failed {
			os.RemoveAll(b.dir)
			return
		}
		fmt.Fprintf(os.Stderr, "bench-failover: what a row that failed has left is in %s\n", b.dir)
		if data, _ := filepath.Glob(filepath.Join(b.dir, "data-*")); data != nil {
			for _, f := range data {
				os.Remove(f)
			}
		}
	}()
	start := time.Now()
	for block := range o.blocks {
		for _, sc := range scenarios() {
			if sc.full && !o.full {
				continue
			}
			for _, r := range rows() {
				if !r.in(sc) || r.left(sc, o.full) || !only.MatchString(sc.name+": "+r.name) {
					continue
				}
				blocks := o.blocks
				if sc.once || r.solo {
					if block > 0 {
						continue
					}
					blocks = 1
				}
				b.each = o.each * time.Duration(o.blocks/blocks)
				n := int(float64(sc.rounds)*o.times/float64(blocks) + 0.5)
				if r.solo {
					n = (n + 2) / 3 // they take a thousand times as long, and vary less
				}
				b.row(ctx, sc, r, max(n, 1), fmt.Sprintf("pass %d of %d, %s", block+1, o.blocks, time.Since(start).Round(time.Second)))
				if ctx.Err() != nil && o.samples != "" {
					return errors.Join(errors.New("stopped; only the samples are written"), b.results.save(o.samples, began, b.results.took(time.Since(start))))
				}
				if ctx.Err() != nil {
					return errors.New("stopped; nothing is written")
				}
			}
		}
	}
	took := b.results.took(time.Since(start))
	ended := page.Describe()
	if o.samples != "" {
		if err := b.results.save(o.samples, began, took); err != nil {
			return err
		}
	}
	var text strings.Builder
	plot := ""
	if o.out != "" {
		plot = plotName
	}
	report(io.MultiWriter(os.Stdout, &text), began, ended, took, b.results, plot)
	if o.out == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(o.out), plotName), []byte(drawing(b.results)), 0o644); err != nil {
		return err
	}
	return page.Update(o.out, "bench-failover", text.String())
}

// row measures one row, and says how it went.
func (b *bench) row(ctx context.Context, sc scenario, r row, n int, where string) {
	res := b.results.of(sc.name, r.name)
	us, err := b.play(ctx, sc, r, n)
	res.Micros = append(res.Micros, us...)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errSkip):
		res.Skipped = strings.TrimPrefix(err.Error(), errSkip.Error()+": ")
		fmt.Fprintf(os.Stderr, "%s: %s: %s: %s\n", where, sc.name, r.name, err)
	case err != nil:
		b.failed = true
		res.Skipped = "failed: " + err.Error()
		fmt.Fprintf(os.Stderr, "%s: %s: %s: %s\n", where, sc.name, r.name, res.Skipped)
	default:
		fmt.Fprintf(os.Stderr, "%s: %s: %s: p50 %s\n", where, sc.name, r.name, span(quantile(us, 0.5)))
	}
}
