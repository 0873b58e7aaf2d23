package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// probe repeats a request at a fixed pace, whatever becomes of the ones before
// it, each on a connection of its own: as clients do who know nothing of each
// other. Its clock is that of the records, CLOCK_MONOTONIC of this machine.
type probe struct {
	url    string
	every  time.Duration
	client *http.Client

	mu       sync.Mutex
	flying   map[int]int64 // start of each attempt under way
	next     int
	attempts []attempt // settled ones that no count has taken yet
	stray    int       // failed outside of every round
	settled  chan struct{}
}

// attempt is one request: mono ns from its start to its whole answer.
type attempt struct {
	start, end int64
	failed     bool
}

const (
	probeTimeout = 10 * time.Second // of one request
	probeFlying  = 512              // requests under way at most
)

func newProbe(url string, every time.Duration) *probe {
	return &probe{url: url, every: every, flying: map[int]int64{}, settled: make(chan struct{}, 1),
		client: &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
}

// once makes one request. Any answer below 500 is one that was served.
func (p *probe) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", p.url, nil)
	if err != nil {
		return err
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return fmt.Errorf("read %s: %w", p.url, err)
	}
	if answer.StatusCode >= 500 {
		return fmt.Errorf("%s answers %s", p.url, answer.Status)
	}
	return nil
}

// start begins the requests, and returns how to end them.
func (p *probe) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(p.every)
		defer tick.Stop()
		for {
			if id, ok := p.begin(); ok {
				all.Go(func() { p.settle(ctx, id, p.once(ctx)) })
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); all.Wait() }
}

func (p *probe) begin() (id int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flying) >= probeFlying {
		return 0, false
	}
	p.next++
	p.flying[p.next] = proc.MonoNow()
	return p.next, true
}

func (p *probe) settle(ctx context.Context, id int, err error) {
	end := proc.MonoNow()
	if ctx.Err() != nil {
		return // called off by us
	}
	p.mu.Lock()
	p.attempts = append(p.attempts, attempt{p.flying[id], end, err != nil})
	delete(p.flying, id)
	p.mu.Unlock()
	select {
	case p.settled <- struct{}{}:
	default:
	}
}

// probeCount is what the probe saw of one round.
type probeCount struct {
	ServedUS *float64 `json:"served_us"` // the first answer of the new leader was whole
	Requests int      `json:"requests"`  // under way at some time between the fault and that answer
	Failed   int      `json:"failed"`
	Delayed  int      `json:"delayed"` // of the served ones: began before the new leader led, and waited for it
}

func (c probeCount) String() string {
	s := "first served " + phase(c.ServedUS)
	return s + fmt.Sprintf(", %d requests: %d failed, %d waited", c.Requests, c.Failed, c.Delayed)
}

// count waits until a request was served after the takeover, and every one that
// began before that has ended, and counts those of the round. zero is its
// begin, mono ns; activeUS its record's, nil: now.
func (p *probe) count(ctx context.Context, zero int64, activeUS *float64) probeCount {
	active := proc.MonoNow()
	if activeUS != nil {
		active = zero + int64(*activeUS*float64(time.Microsecond))
	}
	limit := time.NewTimer(2 * probeTimeout)
	defer limit.Stop()
	for {
		if c, whole := p.look(zero, active); whole {
			return c
		}
		select {
		case <-p.settled:
		case <-limit.C:
			c, _ := p.look(zero, active)
			p.forget(proc.MonoNow(), zero)
			return c
		case <-ctx.Done():
			return probeCount{}
		}
	}
}

// look counts, and takes what it counted if the round is whole.
func (p *probe) look(zero, active int64) (c probeCount, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var served int64
	for _, a := range p.attempts {
		if !a.failed && a.end >= active && (served == 0 || a.end < served) {
			served = a.end
		}
	}
	end := served
	if end == 0 {
		end = proc.MonoNow()
	} else {
		us := float64(served-zero) / float64(time.Microsecond)
		c.ServedUS = &us
	}
	whole = served != 0
	for _, start := range p.flying {
		if start < end {
			whole = false
		}
	}
	for _, a := range p.attempts {
		if a.end < zero || a.start > end {
			continue
		}
		c.Requests++
		switch {
		case a.failed:
			c.Failed++
		case a.start < active && a.end >= active:
			c.Delayed++
		}
	}
	if whole {
		p.forgetLocked(end, zero)
	}
	return c, whole
}

func (p *probe) forget(end, zero int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetLocked(end, zero)
}

// forgetLocked drops what began up to end, and notes what of it failed before
// the round began.
func (p *probe) forgetLocked(end, zero int64) {
	kept := p.attempts[:0]
	for _, a := range p.attempts {
		switch {
		case a.start > end:
			kept = append(kept, a)
		case a.failed && a.end < zero:
			p.stray++
		}
	}
	p.attempts = kept
}

// between is how many requests failed while no round was under way.
func (p *probe) between() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = p.stray
	for _, a := range p.attempts {
		if a.failed {
			n++
		}
	}
	return n
}
