package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/lease"
	"github.com/standbyd/standbyd/coord/shm"
)

// The environment of this program when it is one of several processes.
const (
	childOp  = "STANDBYD_BENCH_OP"
	childDir = "STANDBYD_BENCH_DIR"
)

// window is how long several processes run an operation at once.
const window = 25 * time.Millisecond

// shared are the operations that several processes run on one file. attempt
// says how many of n attempts were done; the others found it taken.
func shared(op, dir string) (attempt func(n int) int, err error) {
	path := func(name string) string { return filepath.Join(dir, name) }
	pid := uint32(os.Getpid())
	claims := func(file string) (func(n int) int, error) {
		e, err := election.Open(path(file))
		if err != nil {
			return nil, err
		}
		return func(n int) (done int) {
			for range n {
				if g, err := e.Claim(election.Attempt{PID: pid, Seat: -1, Grace: grace}); err == nil {
					if e.Release(pid, g.Term) == nil {
						done++
					}
				}
			}
			return done
		}, nil
	}
	switch op {
	case "cas":
		s, err := shm.Open(path("vacant"))
		if err != nil {
			return nil, err
		}
		w := s.Seats[len(s.Seats)-1].Lag
		return func(n int) (done int) {
			for range n {
				if w.CompareAndSwap(0, 1) {
					w.CompareAndSwap(1, 0)
					done++
				}
			}
			return done
		}, nil
	case "claim":
		return claims("bare")
	case "acquire":
		return claims("vacant")
	case "refused":
		e, err := election.Open(path("owned"))
		if err != nil {
			return nil, err
		}
		return func(n int) int {
			for range n {
				e.TryClaim(high, grace)
			}
			return n
		}, nil
	case "snapshot", "look":
		l, err := lease.Open[record](path("held"))
		if err != nil {
			return nil, err
		}
		if op == "snapshot" {
			return func(n int) int {
				for range n {
					l.Snapshot()
				}
				return n
			}, nil
		}
		return func(n int) int {
			for range n {
				l.CurrentOwner()
				l.Election().Stale()
			}
			return n
		}, nil
	case "flock", "ofd":
		f, err := os.OpenFile(path(op), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		run := flocks(f)
		if op == "ofd" {
			if run, err = ofdLocks(f); err != nil {
				return nil, err
			}
		}
		return func(n int) int { run(n); return n }, nil
	}
	return nil, fmt.Errorf("unknown operation %q", op)
}

// child is the whole program of one of several processes.
func child(op string) error {
	attempt, err := shared(op, os.Getenv(childDir))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var ms int
		if _, err := fmt.Sscanf(in.Text(), "for %d", &ms); err != nil {
			return err
		}
		fmt.Println(within(time.Duration(ms)*time.Millisecond, attempt))
	}
	return nil
}

func within(d time.Duration, attempt func(n int) int) (done int) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		done += attempt(100)
	}
	return done
}

func (t *tables) child(op string) (*kid, error) {
	if op == "robust" {
		exe, err := t.robust()
		if err != nil {
			return nil, err
		}
		return startChild(exec.Command(exe, t.path("robust")))
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childOp+"="+op, childDir+"="+t.dir)
	return startChild(cmd)
}

func (t *tables) children(op string, n int) (kids []*kid, done func(), err error) {
	done = func() {
		for _, k := range kids {
			k.Close()
		}
	}
	for range n {
		k, err := t.child(op)
		if err != nil {
			done()
			return nil, nil, err
		}
		kids = append(kids, k)
	}
	return kids, done, nil
}

// crowdRow is one operation by several processes at once.
type crowdRow struct {
	name, what, op string
	processes      int
	figure
}

var crowdOps = []crowdRow{
	{name: pair, what: "By as many goroutines of one process."},
	{name: "CAS pair on the mapping", op: "cas", what: "Whoever finds it taken tries again at once."},
	{name: "election, claim and release", op: "claim", what: "Under the rule that nobody takes from a healthy owner; refused attempts are repeated at once, and are not counted."},
	{name: "lease, claim and release", op: "acquire", what: "The same, with a payload that each adopts."},
	{name: "refused claim", op: "refused", what: "All are refused by an owner that does nothing: loads only, so nobody is in another's way."},
	{name: "snapshot by a non-owner", op: "snapshot", what: "Loads only, too."},
	{name: "POSIX robust mutex", op: "robust", what: "Waiters sleep in the kernel."},
	{name: flockPair, op: "flock", what: "Waiters sleep in the kernel."},
	{name: "fcntl, OFD locks", op: "ofd", what: "Waiters sleep in the kernel."},
}

// contended measures operations by 2 and 4 processes at once: the time between
// two of them that succeed, whoever's they are.
func (t *tables) contended() (rows []crowdRow, err error) {
	for _, n := range []int{2, 4} {
		for _, c := range crowdOps {
			c.processes = n
			if !t.wanted(c.name) {
				continue
			}
			var kids []*kid
			if c.op != "" {
				var done func()
				if kids, done, err = t.children(c.op, n); err != nil {
					t.skip(fmt.Sprintf("%s by %d processes", c.name, n), err)
					continue
				}
				c.figure, err = t.crowd(kids, n)
				done()
			} else {
				c.figure, err = t.crowd(nil, n)
			}
			if err != nil {
				return nil, err
			}
			rows = append(rows, c)
		}
	}
	return rows, nil
}

func (t *tables) crowd(kids []*kid, n int) (figure, error) {
	var times, ratios []float64
	for range max(t.rounds/3, 1) {
		mutex := float64(window) / float64(max(t.mutexes(n), 1))
		each := mutex
		if kids != nil {
			total, err := together(kids, window)
			if err != nil {
				return figure{}, err
			}
			each = float64(window) / float64(max(total, 1))
		}
		times, ratios = append(times, each), append(ratios, each/mutex)
	}
	f := figure{median: median(times), ratio: median(ratios), best: times[0]}
	for _, v := range times {
		f.best = min(f.best, v)
	}
	return f, nil
}

// mutexes is how many pairs n goroutines make of one mutex.
func (t *tables) mutexes(n int) int {
	var wg sync.WaitGroup
	done := make([]int, n)
	for i := range n {
		wg.Go(func() {
			done[i] = within(window, func(n int) int {
				for range n {
					t.mutex.Lock()
					t.mutex.Unlock() //lint:ignore SA2001 the pair alone is measured
				}
				return n
			})
		})
	}
	wg.Wait()
	total := 0
	for _, d := range done {
		total += d
	}
	return total
}

// together lets all run for a while, and adds up what they did.
func together(kids []*kid, d time.Duration) (total int64, err error) {
	for _, k := range kids {
		if err := k.tell("for %d", d.Milliseconds()); err != nil {
			return 0, err
		}
	}
	for _, k := range kids {
		n, err := k.answer()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// readerRow is an owner's operation while other processes only read, beside
// the same while they do nothing.
type readerRow struct {
	name, what, op string
	processes      int
	figure
}

// readers measures what those who read cost the owner. The ratio is to the
// same operation in the same round, while nobody else runs.
func (t *tables) readers() (rows []readerRow, err error) {
	owner := map[string]*row{}
	for _, w := range t.rows() {
		owner[w.name] = w
	}
	for _, r := range []readerRow{
		{name: "write as owner", op: "look", what: "others ask who owns and whether it is stale: they read other lines than the owner writes"},
		{name: "write as owner", op: "snapshot", what: "others take snapshots: each publish moves the lines of the value and of the commit word to the reader and back, which is the price of news"},
		{name: "read as owner", op: "snapshot", what: "others take snapshots: nobody writes"},
		{name: "ownership check", op: "look", what: "others ask who owns and whether it is stale: nobody writes"},
		{name: "claim, beat in an epoch already beaten", op: "look", what: "others ask who owns and whether it is stale: nobody writes"},
	} {
		if !t.wanted(r.name) {
			continue
		}
		for _, n := range []int{2, 4} {
			r.processes = n
			kids, done, err := t.children(r.op, n-1)
			if err != nil {
				t.skip(fmt.Sprintf("%s while others %s", r.name, r.op), err)
				continue
			}
			r.figure, err = disturbed(owner[r.name].run, kids, max(t.rounds/3, 1))
			done()
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// disturbed measures run alone and, by turns, while kids run.
func disturbed(run runner, kids []*kid, rounds int) (figure, error) {
	op := run.clocked()
	n, err := iterations(op)
	if err != nil {
		return figure{}, err
	}
	// The median, not the best: the best slice may be one in which the others
	// did not run.
	typical := func() float64 {
		var all []float64
		for end := time.Now().Add(window * 3 / 4); time.Now().Before(end); {
			d, _ := op(n)
			all = append(all, float64(d)/float64(n))
		}
		return median(all)
	}
	var times, ratios []float64
	for range rounds {
		quiet := typical()
		for _, k := range kids {
			if err := k.tell("for %d", window.Milliseconds()); err != nil {
				return figure{}, err
			}
		}
		time.Sleep(window / 10) // until they run
		loud := typical()
		for _, k := range kids {
			if _, err := k.answer(); err != nil {
				return figure{}, err
			}
		}
		times, ratios = append(times, loud), append(ratios, loud/quiet)
	}
	f := figure{median: median(times), ratio: median(ratios), best: times[0]}
	for _, v := range times {
		f.best = min(f.best, v)
	}
	return f, nil
}
