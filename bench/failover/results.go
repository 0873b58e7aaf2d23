//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"github.com/standbyd/standbyd/bench/page"
)

// result is what was measured of one row in one scenario.
type result struct {
	Micros  []float64 // of each round
	Skipped string    // why not, or not to the end
	Note    string    // what standbyd says of its ways
}

// results are all: by scenario, by row.
type results map[string]map[string]*result

func (r results) of(scenario, row string) *result {
	if r[scenario] == nil {
		r[scenario] = map[string]*result{}
	}
	if r[scenario][row] == nil {
		r[scenario][row] = &result{}
	}
	return r[scenario][row]
}

// at is a quantile of a row, NaN if it was not measured.
func (r results) at(scenario, row string, q float64) float64 {
	if m := r[scenario][row]; m != nil && len(m.Micros) > 0 {
		return quantile(m.Micros, q)
	}
	return math.NaN()
}

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(int(math.Ceil(q*float64(len(v))))-1, len(v)-1)]
}

// saved is a file of samples.
type saved struct {
	Machine page.Machine
	Seconds float64
	Results results
}

// earlier is how long the runs before this one took.
var earlier time.Duration

func (r results) took(this time.Duration) time.Duration { return earlier + this }

// load fills r, and returns the machine as it was before the first run.
func (r results) load(file string, now page.Machine) (page.Machine, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil
	}
	if err != nil {
		return now, err
	}
	s := saved{Results: r}
	if err := json.Unmarshal(b, &s); err != nil {
		return now, fmt.Errorf("%s: %w", file, err)
	}
	if s.Machine.System != now.System || s.Machine.CPU != now.CPU {
		return now, fmt.Errorf("%s: its samples are of another machine: %s, %s", file, s.Machine.System, s.Machine.CPU)
	}
	earlier = time.Duration(s.Seconds * float64(time.Second))
	for _, rows := range r {
		for _, m := range rows {
			m.Skipped = "" // this run finds out again
		}
	}
	return s.Machine, nil
}

func (r results) save(file string, machine page.Machine, took time.Duration) error {
	b, err := json.Marshal(saved{machine, took.Seconds(), r})
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

// span writes microseconds for people.
func span(us float64) string {
	switch {
	case math.IsNaN(us):
		return "-"
	case us < 1000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 10e3:
		return fmt.Sprintf("%.2f ms", us/1e3)
	case us < 1e6:
		return fmt.Sprintf("%.1f ms", us/1e3)
	}
	return fmt.Sprintf("%.2f s", us/1e6)
}
