package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/standbyd/standbyd/bench/page"
)

func report(w io.Writer, before, after page.Machine, t *tables, alone []*row, quiet []readerRow, crowd []crowdRow) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("## Primitives")
	p("")
	p("Written by `make bench`; every number of this part was measured by it, none was typed.")
	p("")
	page.Table(w, before, after, after.When.Sub(before.When))
	p("")
	p("A load above the number of processors means that others ran meanwhile: nanoseconds are then too high, and the ratios are")
	p("what to look at. Each round measures an operation and its reference by turns, %d times %v each, at as many depths of the", turns, slice)
	p("stack (how a value falls into the lines of the cache is an accident of its callers), and takes the best of each. *ratio*")
	p("is the median over %d rounds of their quotient, *best* and *median* are the nanoseconds of one operation over", t.rounds)
	p("the rounds. The segments lie in memory (`%s`).", t.dir[:strings.LastIndex(t.dir, "/")])
	p("")
	p("### Alone")
	p("")
	p("| operation | best ns | median ns | ratio | to | goal | met | allocs |")
	p("|---|---:|---:|---:|---|---:|---|---:|")
	met, goals := 0, 0
	for _, r := range alone {
		goal, ok := "", ""
		if r.goal > 0 {
			goals++
			goal, ok = fmt.Sprintf("%.3g", r.goal), "no"
			if r.ratio <= r.goal {
				met++
				ok = "yes"
			}
		}
		allocs := fmt.Sprint(r.allocs)
		if r.run == nil {
			allocs = "C"
		}
		p("| %s | %.2f | %.2f | %.3f | %s | %s | %s | %s |", r.name, r.best, r.median, r.ratio, r.ref, goal, ok, allocs)
	}
	p("")
	p("%d of %d goals are met in this run. An operation that must be ordered with other processes' is made of locked instructions,", met, goals)
	p("which wait for each other and for all stores before them: what the rows called *floor* cost, it costs about at least. Where the")
	p("goal is below the floor of its operation it is out of reach on this processor, whatever else the operation does or leaves out:")
	p("")
	by := map[string]*row{}
	for _, r := range alone {
		by[r.name] = r
	}
	for _, r := range alone {
		f := by[floors[r.name]]
		if f == nil || r.ratio <= r.goal {
			continue
		}
		where := "the goal is above it: what remains are loads, calls and stores"
		switch {
		case f.ratio > r.goal:
			where = "the goal is out of reach here"
		case f.ratio > r.goal*0.98:
			where = "that takes all but a fiftieth of the goal, which is out of reach here"
		}
		p("- **%s**: goal %.3g, %s alone %.3f, this operation %.3f; %s.", r.name, r.goal, f.name, f.ratio, r.ratio, where)
	}
	p("")
	for _, r := range alone {
		p("- **%s**: %s", r.name, r.what)
	}
	p("")
	p("### An owner while others read")
	p("")
	p("One process is the owner, the others only read, without a pause. The ratio is to the same operation in the same round while")
	p("the others rest; here the median of the slices counts, since in the best one the others may not have run.")
	p("")
	p("| owner's operation | others | processes | best ns | median ns | ratio |")
	p("|---|---|---:|---:|---:|---:|")
	for _, r := range quiet {
		p("| %s | %s | %d | %.2f | %.2f | %.2f |", r.name, r.op, r.processes, r.best, r.median, r.ratio)
	}
	p("")
	seen := map[string]bool{}
	for _, r := range quiet {
		if key := r.name + ", " + r.op; !seen[key] {
			seen[key] = true
			p("- **%s**: %s.", key, r.what)
		}
	}
	p("")
	p("### Contended")
	p("")
	p("Processes of their own on one file, all at it for %v in each of %d rounds: the nanoseconds between two operations that", window, max(t.rounds/3, 1))
	p("succeed, whoever's they are. The ratio is to `sync.Mutex` by as many goroutines, in the same round. With more processes than")
	p("processors, a lock whose waiters try again at once wastes the time of a holder that does not run.")
	p("")
	p("| operation | processes | best ns | median ns | ratio |")
	p("|---|---:|---:|---:|---:|")
	for _, r := range crowd {
		p("| %s | %d | %.1f | %.1f | %.2f |", r.name, r.processes, r.best, r.median, r.ratio)
	}
	p("")
	for _, r := range crowd {
		if r.processes == 2 {
			p("- **%s**: %s", r.name, r.what)
		}
	}
	if len(t.skipped) > 0 {
		p("")
		p("### Skipped")
		p("")
		for _, s := range t.skipped {
			p("- %s", s)
		}
	}
}

// floors names for an operation the row that has its locked instructions alone.
var floors = map[string]string{
	"election, claim and step down": "floor: the steps of a claim",
	"lease, acquire and release":    "floor: the steps of an acquire",
	"WithLease":                     "floor: 6 CAS",
	"read as owner":                 "floor: the steps of a read as owner",
	"write as owner":                "floor: 2 CAS and a copy",
}
