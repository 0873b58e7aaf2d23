package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/standbyd/standbyd/supervisor"
)

// spread is one phase over all rounds, in microseconds. Quantiles are measured
// values, by nearest rank.
type spread struct {
	N   int     `json:"n"` // rounds in which it was measured
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// spreadOf is nil if nothing was measured.
func spreadOf(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	rank := func(p float64) float64 {
		return values[max(int(math.Ceil(p*float64(len(values))))-1, 0)]
	}
	return &spread{len(values), values[0], rank(0.5), rank(0.9), rank(0.99), values[len(values)-1]}
}

// drillSummary is the last line of `drill -o json`.
type drillSummary struct {
	Role     string           `json:"role"`
	Fault    supervisor.Fault `json:"fault"`
	Rounds   int              `json:"rounds"`
	Detected *spread          `json:"detected_us"`
	Claimed  *spread          `json:"claimed_us"`
	Fenced   *spread          `json:"fenced_us"`
	Active   *spread          `json:"active_us"`
	Hooks    *spread          `json:"hooks_us"`
	Served   *spread          `json:"served_us,omitempty"`
	*probeTotal
}

// probeTotal is what became of the probe's requests in all rounds.
type probeTotal struct {
	Requests int `json:"requests"`
	Failed   int `json:"failed"`
	Delayed  int `json:"delayed"`
	Between  int `json:"failed_between"` // failed while no round was under way
}

func (d *drilling) summary() drillSummary {
	over := func(of func(*round) *float64) *spread {
		var values []float64
		for i := range d.rounds {
			if us := of(&d.rounds[i]); us != nil {
				values = append(values, *us)
			}
		}
		return spreadOf(values)
	}
	s := drillSummary{
		Role: d.role, Fault: d.fault, Rounds: len(d.rounds),
		Detected: over(func(r *round) *float64 { return r.DetectedUS }),
		Claimed:  over(func(r *round) *float64 { return r.ClaimedUS }),
		Fenced:   over(func(r *round) *float64 { return r.FencedUS }),
		Active:   over(func(r *round) *float64 { return r.ActiveUS }),
		Hooks:    over(func(r *round) *float64 { return r.HooksUS }),
	}
	if d.probe == nil {
		return s
	}
	s.probeTotal = &probeTotal{Between: d.probe.between()}
	s.Served = over(func(r *round) *float64 {
		if r.probeCount == nil {
			return nil
		}
		s.Requests, s.Failed, s.Delayed = s.Requests+r.Requests, s.Failed+r.Failed, s.Delayed+r.Delayed
		return r.ServedUS
	})
	return s
}

// summarize prints the summary: for people only of several rounds.
func (d *drilling) summarize() error {
	s := d.summary()
	if d.form.json() {
		return printJSON(d.stdout, map[string]drillSummary{"summary": s})
	}
	if len(d.rounds) < 2 {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d rounds of %s on %s, from just before the fault:\n", s.Rounds, s.Fault, s.Role)
	t := table{head: []string{"", "MIN", "P50", "P90", "P99", "MAX"}}
	for _, row := range []struct {
		name string
		*spread
	}{{"detected", s.Detected}, {"claimed", s.Claimed}, {"fenced", s.Fenced}, {"active", s.Active}, {"hooks done", s.Hooks}, {"first served", s.Served}} {
		if row.spread == nil {
			continue
		}
		name := row.name
		if row.N < s.Rounds {
			name += fmt.Sprintf(" (%d of %d)", row.N, s.Rounds)
		}
		t.add(cell{name, ""}, cell{phase(&row.Min), ""}, cell{phase(&row.P50), ""}, cell{phase(&row.P90), ""}, cell{phase(&row.P99), ""}, cell{phase(&row.Max), ""})
	}
	t.write(&b, painter(d.stdout))
	if s.probeTotal != nil {
		fmt.Fprintf(&b, "  %d requests during the rounds: %d failed, %d waited for the next leader\n", s.Requests, s.Failed, s.Delayed)
		if s.Between > 0 {
			fmt.Fprintf(&b, "  %d requests failed while no round was under way\n", s.Between)
		}
	}
	return writeErr(d.stdout.Write(b.Bytes()))
}
