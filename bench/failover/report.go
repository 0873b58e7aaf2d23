//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/standbyd/standbyd/bench/page"
)

func report(w io.Writer, before, after page.Machine, took time.Duration, all results, plot string) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("## Failover")
	p("")
	p("Written by `make bench-failover`; every number of this part was measured by it, none was typed.")
	p("")
	page.Table(w, before, after, took)
	p("")
	p("How long nobody leads. Each round kills the leader (SIGKILL) and takes the time from just before the signal until the next")
	p("leader has made its first write as the leader, as that one itself stamps it with CLOCK_MONOTONIC in memory that all share.")
	p("The same worker everywhere: it loads its data into memory of small pages, says that it is warm, and waits for its turn;")
	p("the workers in Go are one program, those in C do the same steps. Every row has its own processes, brought up for some rounds")
	p("and ended again, by turns, so that a noisy moment of the machine meets them all. *to flock* is the row's p50 to that of a")
	p("waiter in `flock(2)` written in Go. With fewer than 100 rounds the p99 is the maximum. Where loading the data")
	p("takes long, a row has fewer rounds: each has the same time.")
	if plot != "" {
		p("")
		p("![time without a leader, log scale](%s)", plot)
	}
	for _, sc := range scenarios() {
		scenarioTable(p, sc, all)
	}
	goals(p, all)
	p("")
	p("### The ways")
	p("")
	for _, r := range rows() {
		if measured(all, r.name) && r.what != "" {
			p("- **%s**: %s", r.name, r.what)
		}
	}
	for _, s := range []struct{ name, what string }{
		{"nice", "the threads that wait and beat run at nice -20."},
		{"fifo", "the threads that wait and beat run under SCHED_FIFO."},
	} {
		if measured(all, ourExit+", "+s.name) {
			p("- **…, %s**: `scheduling = \"%[1]s\"`: %s", s.name, s.what)
		}
	}
	// The rows that are missing for the same reason stand together.
	missing := map[string][]string{}
	var order []string
	for _, sc := range scenarios() {
		for _, r := range rows() {
			if m := all[sc.name][r.name]; m != nil && m.Skipped != "" {
				if missing[m.Skipped] == nil {
					order = append(order, m.Skipped)
				}
				missing[m.Skipped] = append(missing[m.Skipped], sc.name+": "+r.name)
			}
		}
	}
	for i, why := range order {
		if i == 0 {
			p("")
			p("### Not measured")
			p("")
		}
		p("- %s (%s)", why, strings.Join(missing[why], " · "))
	}
}

func measured(all results, row string) bool {
	for _, rows := range all {
		if m := rows[row]; m != nil && len(m.Micros) > 0 {
			return true
		}
	}
	return false
}

func scenarioTable(p func(string, ...any), sc scenario, all results) {
	begun := false
	for _, r := range rows() {
		m := all[sc.name][r.name]
		if m == nil || len(m.Micros) == 0 {
			continue
		}
		if !begun {
			begun = true
			p("")
			p("### %s", strings.ToUpper(sc.name[:1])+sc.name[1:])
			p("")
			p("%s", sc.explain())
			p("")
			p("| way | rounds | p50 | p90 | p99 | max | to flock | %s |", axis)
			p("|---|---:|---:|---:|---:|---:|---:|---|")
		}
		ratio := ""
		if f := all.at(sc.name, flockGo, 0.5); !math.IsNaN(f) {
			ratio = fmt.Sprintf("%.3g", all.at(sc.name, r.name, 0.5)/f)
		}
		at := func(q float64) float64 { return quantile(m.Micros, q) }
		p("| %s | %d | %s | %s | %s | %s | %s | `%s` |", r.name, len(m.Micros), span(at(0.5)), span(at(0.9)), span(at(0.99)), span(at(1)), ratio, bar(at(0.5), at(0.99)))
	}
	if !begun {
		return
	}
	notes := map[string][]string{}
	var order []string
	for _, r := range rows() {
		if m := all[sc.name][r.name]; m != nil && m.Note != "" && len(m.Micros) > 0 {
			if notes[m.Note] == nil {
				order = append(order, m.Note)
			}
			notes[m.Note] = append(notes[m.Note], r.name)
		}
	}
	for i, note := range order {
		if i == 0 {
			p("")
			p("What noticed the deaths, as `standbyd status` said meanwhile:")
			p("")
		}
		p("- %s: %s", note, strings.Join(notes[note], " · "))
	}
}

func (sc scenario) explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d standbys, %d MiB loaded in every worker", sc.standbys, sc.size/miB)
	if sc.standbys == 1 {
		b.Reset()
		fmt.Fprintf(&b, "1 standby, %d MiB loaded in every worker", sc.size/miB)
	}
	if sc.busy {
		b.WriteString(", and on every processor another process that never rests")
	}
	switch sc.fault {
	case hang:
		fmt.Fprintf(&b, ". The leader is stopped (SIGSTOP) at any moment of a tick of %v; grace %d. A lock's holder that hangs keeps it, and a supervisor that waits for an exit sees none: they have no row here.", sc.tick, hangGrace)
	case killed:
		b.WriteString(". The leader is stopped (SIGSTOP), and a moment later, long before that counts as a hang, it is killed: what it costs to end a process that does nothing, and to take over from it. No tick is part of it.")
	case switchover:
		b.WriteString(". `standbyd switchover`: the time is from when the old leader's work has returned until the next one's first write.")
	default:
		b.WriteString(".")
	}
	return b.String()
}

// The plot in a table's cell: a decade has six characters, from 10 µs on.
const (
	axis    = "10 µs to 10 s, log scale: p50 to p99"
	decade  = 6
	decades = 6
)

func bar(p50, p99 float64) string {
	place := func(us float64) int {
		return max(0, min(int((math.Log10(us)-1)*decade), decade*decades-1))
	}
	var b strings.Builder
	for i := range decade * decades {
		switch {
		case i == place(p50):
			b.WriteRune('●')
		case i > place(p50) && i <= place(p99):
			b.WriteRune('─')
		case i%decade == 0:
			b.WriteRune('·')
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// goals says whether the run shows what standbyd promises.
func goals(p func(string, ...any), all results) {
	begun := false
	goal := func(what string, got, most float64, form func(float64) string) {
		if math.IsNaN(got) || math.IsNaN(most) {
			return
		}
		if !begun {
			begun = true
			p("")
			p("### Goals")
			p("")
			p("| goal | at most | measured | met |")
			p("|---|---:|---:|---|")
		}
		met := "no"
		if got <= most {
			met = "yes"
		}
		p("| %s | %s | %s | %s |", what, form(most), form(got), met)
	}
	ratio := func(v float64) string { return fmt.Sprintf("%.3g", v) }
	p50 := func(sc, row string) float64 { return all.at(sc, row, 0.5) }
	flock, slow := p50(small, flockGo), p50(large, flockGo)
	goal("small leader, proof exiting: p50 to flock in Go", p50(small, ourExit)/flock, 1.1, ratio)
	goal("small leader, fence token: p50 to flock in Go", p50(small, ourToken)/flock, 0.5, ratio)
	goal("1 GiB leader, proof exiting: p50 to flock in Go", p50(large, ourExit)/slow, 0.05, ratio)
	goal("1 GiB leader, proof exiting: p50, to that of a small one + 0.5 ms", p50(large, ourExit), p50(small, ourExit)+500, span)
	goal("1 GiB leader, proof gone: p50 to flock in Go", p50(large, ourGone)/slow, 1, ratio)
	for _, sc := range scenarios() {
		if sc.fault == hang && sc.tick >= 5*time.Millisecond { // a shorter one is only to work
			most := float64(((hangGrace+1)*sc.tick + 2*time.Millisecond).Microseconds())
			goal(sc.name+", fence token: p99, to (grace + 1) ticks + 2 ms", all.at(sc.name, ourToken, 0.99), most, span)
			goal(sc.name+", fence process, proof exiting: the same", all.at(sc.name, ourExit, 0.99), most, span)
			goal(sc.name+", fence process, proof gone: the same", all.at(sc.name, ourGone, 0.99), most, span)
		}
	}
	goal("switchover: p50", p50("switchover", ourGone), 300, span)
	if begun {
		p("")
		p("All goals are of `scheduling = \"normal\"`. What a goal calls proof is met by *exiting*: no code of the old process can run any")
		p("more, which is what a claimant must know. *Gone* says more, and comes later: a flock is released when the kernel closes the")
		p("dead process's files, and the process is gone when that and the rest of its end is over. After a hang, fence token shows")
		p("the detection alone; fence process adds the killing of a process that did not die by itself, and with proof gone its teardown.")
		if all.at(still, ourExit, 0.5) > 0 && all.at(still, ourGone, 0.5) > 0 {
			p("What that alone takes, from the SIGKILL of a stopped leader to the next one's first write, was measured in the same run: %s at p50",
				span(all.at(still, ourExit, 0.5)))
			p("and %s at p99 with proof exiting, %s and %s with proof gone. The ticks come before it, each as late as a timer wakes a thread here.",
				span(all.at(still, ourExit, 0.99)), span(all.at(still, ourGone, 0.5)), span(all.at(still, ourGone, 0.99)))
			p("Where an end takes several milliseconds more than others, the kernel frees the dead process's memory on the processor on which the")
			p("next leader waits for its turn: a kernel that does not preempt itself goes on with that for a scheduler's tick, and where processors")
			p("show no cache that they share, as virtual ones may not, it does not wake a thread on another one that is idle.")
		}
		if v := p50(small, ourGone) / flock; !math.IsNaN(v) {
			p("")
			p("With proof gone, the small leader's p50 to flock in Go is %.3g.", v)
		}
	}
}
