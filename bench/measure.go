package main

import (
	"runtime"
	"slices"
	"time"
)

// slice is how long one measurement lasts: less than a scheduler's, so that
// most are not interrupted. turns is how many of them a round takes of an
// operation and of its reference, each in another place of the stack; the best of
// each counts.
const (
	slice = 100 * time.Microsecond
	turns = len(places)
)

// runner runs an operation n times.
type runner func(n int)

// clocked runs an operation n times somewhere else, and says how long it took.
type clocked func(n int) (time.Duration, error)

func (r runner) clocked() clocked {
	place := 0
	return func(n int) (time.Duration, error) {
		place++
		start := time.Now()
		r.at(place, n)
		return time.Since(start), nil
	}
}

// iterations is how often an operation must run to fill a slice.
func iterations(c clocked) (int, error) {
	for n := 1; ; n *= 2 {
		best := time.Hour
		for range 3 {
			d, err := c(n)
			if err != nil {
				return 0, err
			}
			best = min(best, d)
		}
		if best >= slice/2 {
			return n, nil
		}
	}
}

// figure is what was measured of one operation: nanoseconds for each, the best
// and the median of the rounds, and the median of its ratios to the reference
// in the same round.
type figure struct {
	best, median, ratio float64
}

// compare measures op and its reference by turns.
func compare(op, ref clocked, rounds int) (figure, error) {
	nOp, err := iterations(op)
	if err != nil {
		return figure{}, err
	}
	nRef, err := iterations(ref)
	if err != nil {
		return figure{}, err
	}
	var times, ratios []float64
	for range rounds {
		bestOp, bestRef := time.Hour, time.Hour
		for range turns {
			d, err := ref(nRef)
			if err != nil {
				return figure{}, err
			}
			bestRef = min(bestRef, d)
			if d, err = op(nOp); err != nil {
				return figure{}, err
			}
			bestOp = min(bestOp, d)
		}
		each := float64(bestOp) / float64(nOp)
		times = append(times, each)
		ratios = append(ratios, each/(float64(bestRef)/float64(nRef)))
	}
	return figure{best: slices.Min(times), median: median(times), ratio: median(ratios)}, nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// allocations is how many there are in each run of an operation.
func allocations(r runner) uint64 {
	const n = 1000
	var before, after runtime.MemStats
	r(1)
	runtime.ReadMemStats(&before)
	r(n)
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / n
}
