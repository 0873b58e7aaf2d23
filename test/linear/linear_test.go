//go:build unix

package linear

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/standbyd/standbyd/coord/lease"
	"github.com/standbyd/standbyd/coord/shm"
)

const (
	processes = 4
	roundTime = 400 * time.Millisecond
	killsMost = 5 // in a round: each may leave an operation open, and open ones make the search long
	// checkTime bounds the search in one history. One that is not decided is
	// counted, and is no proof of anything.
	checkTime = 20 * time.Second
)

// round is one history: a new segment, and what its processes wrote down.
type round struct {
	ops          []porcupine.Operation // of both objects
	died         map[uint32]int64      // when each process was last heard of
	kills, stops int
	open         map[kind]int
}

// victim is a process that runs.
type victim struct {
	cmd    *exec.Cmd
	log    string
	err    bytes.Buffer
	exited chan struct{}
}

// players are the processes of a round.
type players struct {
	t      *testing.T
	object string
	dir    string
	path   string
	kills  int
	all    []*victim
}

// start starts a process. The first ones will kill themselves.
func (p *players) start() *victim {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	kill := 0
	if p.kills < killsMost {
		p.kills++
		kill = 10 + rand.IntN(150)
	}
	v := &victim{cmd: exec.Command(exe), log: filepath.Join(p.dir, fmt.Sprintf("log%d", len(p.all))), exited: make(chan struct{})}
	v.cmd.Env = append(os.Environ(), envSegment+"="+p.path, envLog+"="+v.log, envKind+"="+p.object,
		fmt.Sprintf("%s=%d", envKill, kill))
	v.cmd.Stderr = &v.err
	if err := v.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		v.cmd.Wait()
		close(v.exited)
	}()
	p.all = append(p.all, v)
	return v
}

// begun waits until the process has written down its first call.
func (v *victim) begun(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if fi, err := os.Stat(v.log); err == nil && fi.Size() > 0 {
			return
		}
		select {
		case <-v.exited:
			return
		default:
			v.cmd.Process.Signal(syscall.SIGCONT) // it may have stopped in its first call
		}
	}
	t.Fatalf("process %d does nothing", v.cmd.Process.Pid)
}

// playRound runs one round with kills and stops at random.
func playRound(t *testing.T, object string) *round {
	t.Helper()
	dir := t.TempDir()
	p := players{t: t, object: object, dir: dir, path: filepath.Join(dir, "segment")}
	params := shm.DefaultParams()
	params.Tick = 2 * time.Millisecond
	l, err := lease.Create(p.path, block{}, func(q *shm.Params) { *q = params })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := &round{died: map[uint32]int64{}, open: map[kind]int{}}
	var running [processes]*victim
	for i := range running {
		running[i] = p.start()
	}
	defer func() {
		for _, v := range running {
			v.cmd.Process.Kill()
			<-v.exited
		}
	}()
	for _, v := range running { // the machine may be busy
		v.begun(t)
	}
	for end := time.Now().Add(roundTime); time.Now().Before(end); {
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
		i := rand.IntN(processes)
		v := running[i]
		switch rand.IntN(8) {
		case 0, 1:
			r.stops++
			v.cmd.Process.Signal(syscall.SIGSTOP)
		default:
			v.cmd.Process.Signal(syscall.SIGCONT)
		}
		select {
		case <-v.exited:
			running[i] = p.start()
		default:
		}
	}
	for _, v := range running {
		for done := false; !done; {
			v.cmd.Process.Signal(syscall.SIGTERM)
			v.cmd.Process.Signal(syscall.SIGCONT)
			select {
			case <-v.exited:
				done = true
			case <-time.After(time.Millisecond):
			}
		}
	}
	for client, v := range p.all {
		if v.err.Len() > 0 {
			t.Fatalf("process %d: %s", v.cmd.Process.Pid, v.err.String())
		}
		if s, ok := v.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
			r.kills++
		}
		r.take(t, client, v.log)
	}
	r.finish()
	return r
}

// take reads what one process wrote down. The last line may be cut.
func (r *round) take(t *testing.T, client int, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return // killed before it began
	}
	if err != nil {
		t.Fatal(err)
	}
	var open *porcupine.Operation
	for line := range strings.Lines(string(raw)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var c call
		var out result
		var began int64
		if n, _ := fmt.Sscanf(line, "call %s %d %d %d %d", &c.Kind, &c.PID, &c.Term, &c.Value, &began); n == 5 && open == nil {
			open = &porcupine.Operation{ClientId: client, Input: c, Call: began}
			r.died[c.PID] = began
			continue
		}
		if n, _ := fmt.Sscanf(line, "told %t %d %d %t %d %d %d", &out.OK, &out.Term, &out.PID, &out.Crash, &out.Value, &began, &out.At); n == 7 && open != nil {
			open.Output, open.Call, open.Return = out, began, out.At
			r.ops = append(r.ops, *open)
			r.died[open.Input.(call).PID] = out.At
			open = nil
			continue
		}
		t.Fatalf("%s: unexpected line %q", path, line)
	}
	if open != nil {
		open.Output = result{Open: true}
		r.ops = append(r.ops, *open)
	}
}

// finish gives the open operations their end, after everything, and the terms
// that they may have got.
func (r *round) finish() {
	told := map[uint64]bool{}
	var last uint64
	var end int64
	for _, op := range r.ops {
		out := op.Output.(result)
		end = max(end, op.Call, op.Return)
		last = max(last, out.Term)
		if op.Input.(call).Kind == claim && out.OK {
			told[out.Term] = true
		}
	}
	var untold []uint64
	for term := uint64(1); term <= last+1; term++ {
		if !told[term] {
			untold = append(untold, term)
		}
	}
	for i := range r.ops {
		op := &r.ops[i]
		if !op.Output.(result).Open {
			continue
		}
		r.open[op.Input.(call).Kind]++
		op.Return = end + 1
		c := op.Input.(call)
		c.Granted = untold
		op.Input = c
	}
}

// of are the operations that one object knows. Open reads change nothing.
func (r *round) of(kinds map[kind]bool) (ops []porcupine.Operation) {
	for _, op := range r.ops {
		c, out := op.Input.(call), op.Output.(result)
		if kinds[c.Kind] && (changes[c.Kind] || !out.Open) {
			ops = append(ops, op)
		}
	}
	return ops
}

// judge looks for an order. The error of a history that has none names the
// file with its picture.
func judge(m porcupine.Model, what string, ops []porcupine.Operation) (porcupine.CheckResult, error) {
	verdict := porcupine.CheckOperationsTimeout(m, ops, checkTime)
	if verdict != porcupine.Illegal {
		return verdict, nil
	}
	_, info := porcupine.CheckOperationsVerbose(m, ops, checkTime)
	err := fmt.Errorf("%s: no order explains the %d operations", what, len(ops))
	f, ferr := os.CreateTemp("", "standbyd-linear-*.html")
	if ferr != nil {
		return verdict, errors.Join(err, ferr)
	}
	defer f.Close()
	if verr := porcupine.Visualize(m, info, f); verr != nil {
		return verdict, errors.Join(err, verr)
	}
	return verdict, fmt.Errorf("%w; see %s", err, f.Name())
}

// TestLinearizable: whatever is killed and stopped, the owner word and the
// payload are as if each operation had happened at one moment of its call.
// SOAK=1 goes on for five minutes.
func TestLinearizable(t *testing.T) {
	duration := 20 * time.Second
	switch {
	case os.Getenv("SOAK") != "":
		duration = 5 * time.Minute
	case testing.Short():
		duration = 3 * time.Second
	}
	var rounds, kills, stops, ops, undecided int
	open := map[kind]int{}
	var terms, hangs, crashes, late int // grants, those from an owner that was stale or dead, refused writes
	began := time.Now()
	enough := func() bool {
		happened := hangs > 0 && late > 0 && len(open) > 0 // on a busy machine that takes longer
		return time.Since(began) > duration && happened || time.Since(began) > duration+time.Minute
	}
	for ; !enough() && !t.Failed(); rounds++ {
		r := playRound(t, "")
		kills, stops, ops = kills+r.kills, stops+r.stops, ops+len(r.ops)
		for k, n := range r.open {
			open[k] += n
		}
		for _, op := range r.ops {
			switch c, out := op.Input.(call), op.Output.(result); {
			case c.Kind == claim && out.OK:
				terms++
				if out.Crash {
					crashes++
				} else if out.PID != 0 {
					hangs++
				}
			case c.Kind == write && !out.OK && !out.Open:
				late++
			}
		}
		for _, o := range []struct {
			name  string
			model porcupine.Model
			kinds map[kind]bool
		}{
			{"ownership", ownership(r.died), ofOwnership},
			{"payload", payload(), ofPayload},
		} {
			verdict, err := judge(o.model, o.name, r.of(o.kinds))
			if err != nil {
				t.Error(err)
			}
			if verdict == porcupine.Unknown {
				undecided++
			}
		}
	}
	t.Logf("%d rounds, %d operations, %d terms (%d from a hung owner, %d from a dead one), %d writes refused, %d kills, %d stops from outside, left open: %v, %d histories undecided",
		rounds, ops, terms, hangs, crashes, late, kills, stops, open, undecided)
	if undecided*4 > rounds {
		t.Errorf("%d of %d histories could not be decided", undecided, 2*rounds)
	}
	if ops < 50*rounds || hangs == 0 || late == 0 || len(open) == 0 {
		t.Error("the processes did next to nothing")
	}
}

// TestNaiveIsFound: with objects as one would write them first, the same
// processes soon leave a history that no order explains.
func TestNaiveIsFound(t *testing.T) {
	for _, c := range []struct {
		kind  string
		model func(*round) porcupine.Model
		kinds map[kind]bool
	}{
		{"in place", func(*round) porcupine.Model { return payload() }, ofPayload},
		{"check then act", func(r *round) porcupine.Model { return ownership(r.died) }, ofOwnership},
	} {
		t.Run(c.kind, func(t *testing.T) {
			for rounds, end := 1, time.Now().Add(2*time.Minute); time.Now().Before(end); rounds++ {
				r := playRound(t, c.kind)
				verdict, err := judge(c.model(r), c.kind, r.of(c.kinds))
				if verdict != porcupine.Illegal {
					continue
				}
				t.Logf("found in round %d: %v", rounds, err)
				_, picture, ok := strings.Cut(err.Error(), "; see ")
				if html, rerr := os.ReadFile(picture); !ok || rerr != nil || !bytes.Contains(html, []byte("<html")) {
					t.Errorf("the error %q names no picture: %v", err, rerr)
				}
				os.Remove(picture)
				return
			}
			t.Error("no fault was found")
		})
	}
}
