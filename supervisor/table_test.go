package supervisor

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew; commit only differences that you understand")

func testPolicy() *policy {
	r := DefaultRole()
	r.Name, r.Command = "kv", []string{"/bin/true"}
	r.Hooks = []NamedHooks{{Name: "a", Hooks: UnimplementedHooks{}}, {Name: "b", Hooks: UnimplementedHooks{}}}
	return &policy{RoleConfig: r}
}

var testNow = moment{Wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Mono: int64(time.Hour)}

// testState has three workers with pids 100, 101, 102; 100 is the subject.
func testState() state {
	s := newState(testPolicy(), testNow.Mono)
	s.generation, s.segment, s.sockets, s.hooked = 3, "/run/segment.3", true, true
	for i := range s.workers {
		s.workers[i].wanted, s.workers[i].version = true, s.version
		s.workers[i].pid, s.workers[i].lot, s.workers[i].ready, s.workers[i].readyAt = 100+i, lotStandby, true, testNow.Mono
		s.seats = append(s.seats, seatView{seat: i + 1, pid: uint32(100 + i), ready: true, joined: uint64(i + 1)})
	}
	return s
}

func workerIn(row lot) state {
	s := testState()
	w := &s.workers[0]
	w.lot = row
	switch row {
	case lotStopped, lotBackoff, lotFailed, lotQueued:
		w.pid, w.ready, w.readyAt, w.wanted = 0, false, 0, row != lotStopped
	case lotStarting:
		w.ready, w.readyAt = false, 0
	case lotLeader, lotDraining:
		s.owner, s.active = hold{100, 7}, hold{100, 7}
		w.leading = 7
	case lotStopping:
		w.wanted = false
	case lotEnded:
		w.ready, w.readyAt = false, 0
	}
	return s
}

// wordInput makes the input that leads to a column, or nil if the column is
// reached from within a step only.
func wordInput(w word) input {
	code := 1
	switch w {
	case wTurn:
		return inTurn{0}
	case wLaunched:
		return inLaunched{0, 200}
	case wUnlaunched:
		return inUnlaunched{index: 0, err: errors.New("no such file")}
	case wEnded:
		return inEnded{0, 100}
	case wExited:
		return inExited{index: 0, pid: 100, exit: Exit{PID: 100, Code: &code}}
	}
	return inDue{}
}

// TestWorkerTable runs every cell of workerTable and compares with the golden
// file: the lot that follows, and the effects in order.
func TestWorkerTable(t *testing.T) {
	var out strings.Builder
	for row := range lotCount {
		fmt.Fprintf(&out, "%s\n", row)
		for col := range wordCount {
			cell := workerTable[row][col]
			if cell == nil {
				t.Fatalf("no cell for %s x %s", row, wordNames[col])
			}
			turn := &turn{s: workerIn(row), now: testNow, in: wordInput(col)}
			cell(turn, 0)
			fmt.Fprintf(&out, "  %-11s %s%s\n", wordNames[col], turn.s.workers[0].lot, describe(turn.out))
		}
	}
	golden(t, "worker_table.txt", out.String())
}

func roleIn(row phase) state {
	s := testState()
	s.phase = row
	switch row {
	case phaseLed:
		lead(&s)
	case phaseSwitching:
		lead(&s)
		s.phase = row
		s.change = &changeState{term: 7, to: 101, seat: 2, by: testNow.Mono + int64(time.Minute), reply: make(chan answer[Record], 1)}
		s.control.nominee, s.control.resign, s.control.until, s.control.planned = 2, 7, s.change.by, true
	case phaseVacant:
		s.ledBy = "kv-2"
	case phasePaused:
		s.ledBy, s.pause = "kv-2", pausing{on: true, until: testNow.Mono + int64(time.Minute)}
	case phaseHeld:
		s.ledBy, s.control.mode, s.control.until = "kv-2", controlHeld, testNow.Mono+int64(time.Minute)
	case phaseRenewing:
		for i := range s.workers {
			s.workers[i].lot, s.workers[i].pid = lotBackoff, 0
		}
		s.renewing = true
	case phaseClosing:
		lead(&s)
		s.phase = row
		s.control.mode, s.drainBy = controlClosed, testNow.Mono
	case phaseStopping:
		for i := range s.workers {
			s.workers[i].lot, s.workers[i].wanted = lotStopping, false
		}
	case phaseEnding, phaseStopped:
		for i := range s.workers {
			s.workers[i].lot, s.workers[i].wanted, s.workers[i].pid = lotStopped, false, 0
		}
	}
	return s
}

func lead(s *state) {
	s.phase = phaseLed
	s.owner, s.active = hold{100, 7}, hold{100, 7}
	s.led, s.ledTerms[1] = leadership{hold: hold{100, 7}, worker: 0, reason: role.ReasonFirst}, 7
	s.ledBy = "kv-0"
	s.workers[0].lot, s.workers[0].leading = lotLeader, 7
	s.told = role.Transition{Role: "kv", Token: s.token(7), Worker: "kv-0", PID: 100, Reason: role.ReasonFirst}
	s.ring = []ringView{{term: 7, pid: 100, reason: role.ReasonFirst, claimed: 10, activated: 20}}
	s.recorded, s.counted = 7, 7
}

// reloaded has one worker more and another budget.
func reloaded() *policy {
	p := testPolicy()
	p.Workers, p.Failovers = 4, 9
	return p
}

func happeningInput(h happening) input {
	t := role.Transition{Role: "kv", Token: role.MakeToken(3, 7), Worker: "kv-0", PID: 100}
	return [happeningCount]input{
		hHooked:  inHooked{gate: true},
		hSeen:    inSeen{owner: hold{101, 8}, active: hold{101, 8}, seats: testState().seats},
		hLost:    inLost{errors.New("removed")},
		hRenewed: inRenewed{generation: 4, segment: "/run/segment.4"},
		hSockets: inSockets{ok: true},
		hJob:     inJob{kind: momentPromote, t: t, at: testNow.Mono},
		hReplay:  inReplay{0},
		hDue:     inDue{},
		hReload:  inReload{policy: reloaded(), version: "another", reply: make(chan answer[Rolled], 1)},
		hHand:    inByHand{handStop, 1, make(chan answer[[]int], 1)},
		hAck:     inAck{make(chan answer[struct{}], 1)},
		hDrill:   inDrill{fault: FaultKill, reply: make(chan answer[Record], 1)},

		hSwitchover: inSwitchover{to: -1, reply: make(chan answer[Record], 1)},
		hFailover:   inFailover{to: 2, reply: make(chan answer[Record], 1)},
		hPause:      inPause{reply: make(chan answer[PauseStatus], 1)},
		hResume:     inResume{reply: make(chan answer[bool], 1)},

		hClose: inClose{},
		hKill:  inKill{},
	}[h]
}

// TestRoleTable runs every cell of roleTable through step, so that what
// settles after it is seen too.
func TestRoleTable(t *testing.T) {
	var out strings.Builder
	for row := range phaseCount {
		fmt.Fprintf(&out, "%s\n", row)
		for col := range happeningCount {
			if roleTable[row][col] == nil {
				t.Fatalf("no cell for %s x %s", row, happeningNames[col])
			}
			next, effects := step(roleIn(row), happeningInput(col), testNow)
			fmt.Fprintf(&out, "  %-10s %s%s\n", happeningNames[col], next.phase, describe(effects))
		}
	}
	golden(t, "role_table.txt", out.String())
}

func describe(effects []effect) string {
	var out strings.Builder
	for _, e := range effects {
		out.WriteString("; ")
		switch e := e.(type) {
		case doQueue:
			fmt.Fprintf(&out, "queue %d", e.index)
		case doLaunch:
			fmt.Fprintf(&out, "launch %d", e.index)
		case doBury:
			fmt.Fprintf(&out, "bury %d", e.index)
		case doRelease:
			fmt.Fprintf(&out, "release %d", e.index)
		case doSignal:
			fmt.Fprintf(&out, "signal %d %v", e.index, e.sig)
		case doKillGroup:
			fmt.Fprintf(&out, "kill group %d", e.index)
		case doHit:
			fmt.Fprintf(&out, "hit %d term %d %s", e.index, e.term, e.fault)
		case doControl:
			fmt.Fprintf(&out, "control %s gate=%v nominee=%d resign=%d granted=%d", [...]string{"open", "paused", "held", "closed"}[e.word.mode],
				e.word.gate, e.word.nominee, e.word.resign, e.word.granted)
			if e.word.byHand {
				out.WriteString(" by hand")
			}
			if e.word.planned {
				out.WriteString(" planned")
			}
		case doLast:
			fmt.Fprintf(&out, "last %d pid %d %v", e.seat, e.pid, e.on)
		case doJob:
			fmt.Fprintf(&out, "%v(%v %s %s)", e.kind, e.t.Token, e.t.Worker, e.t.Reason)
		case doRecord:
			fmt.Fprintf(&out, "record %v %s->%s %s", e.record.Token, e.record.From, e.record.To, e.record.Reason)
		case doEmit:
			fmt.Fprintf(&out, "emit %s", e.event.Type)
			if e.event.Type == EventRoleState {
				fmt.Fprintf(&out, " %q", e.event.Text)
			}
		case doAnswer:
			out.WriteString("answer")
		default:
			fmt.Fprintf(&out, "%s", strings.TrimPrefix(fmt.Sprintf("%T", e), "supervisor.do"))
		}
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			t.Errorf("%s:%d\n want %s\n got  %s", path, i+1, a, b)
		}
	}
}
