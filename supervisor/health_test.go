package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// ledState has kv-0 leading and two ready standbys, each in its seat.
func ledState(change func(*policy)) state {
	s := testState()
	p := testPolicy()
	p.Health.TCP, p.Health.Threshold = "127.0.0.1:1", 2
	p.Watchdog = time.Second
	if change != nil {
		change(p)
	}
	s.policy = p
	lead(&s)
	for i := range s.workers {
		s.workers[i].vitals.limit, s.workers[i].vitals.passed = p.Watchdog, true
	}
	return s
}

// steps takes inputs one after the other and returns the effects of the last.
func steps(s state, inputs ...input) (state, string) {
	var effects []effect
	for _, in := range inputs {
		s, effects = step(s, in, testNow)
	}
	return s, describe(effects)
}

func fails(i int) input {
	return inProbed{index: i, pid: 100 + i, kind: probeHealth, err: errors.New("503")}
}

func passes(i int) input { return inProbed{index: i, pid: 100 + i, kind: probeHealth} }

func TestProbesDecide(t *testing.T) {
	for _, c := range []struct {
		name   string
		inputs []input
		index  int
		lot    lot
		effect string // in the last step's effects; "-": no signal
	}{
		{"one failure is none", []input{fails(1)}, 1, lotStandby, "-"},
		{"a success between counts anew", []input{fails(1), passes(1), fails(1)}, 1, lotStandby, "-"},
		{"a standby is restarted", []input{fails(1), fails(1)}, 1, lotStopping, "signal 1 terminated"},
		{"a leader gives way", []input{fails(0), fails(0)}, 0, lotStopping, "signal 0 terminated"},
		{"an answer of an earlier process", []input{fails(1), inProbed{index: 1, pid: 99, kind: probeHealth, err: errors.New("x")}}, 1, lotStandby, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, got := steps(ledState(nil), c.inputs...)
			if s.workers[c.index].lot != c.lot {
				t.Errorf("worker %d is %v, want %v", c.index, s.workers[c.index].lot, c.lot)
			}
			if c.effect == "-" && strings.Contains(got, "signal") || c.effect != "-" && !strings.Contains(got, c.effect) {
				t.Errorf("effects: %s", got)
			}
		})
	}
}

// The standbys are ended while the leader is in health; then it is the last one.
func TestTheLastOneIsKept(t *testing.T) {
	s, _ := steps(ledState(nil), fails(1), fails(1), fails(2), fails(2))
	s, got := steps(s, fails(0), fails(0), fails(0))
	if s.workers[0].lot != lotLeader || strings.Contains(got, "signal") || !strings.Contains(s.workers[0].why, "kept") {
		t.Errorf("the last one: %v, %s, why %q", s.workers[0].lot, got, s.workers[0].why)
	}
}

func TestAllIllAreKept(t *testing.T) {
	s, _ := steps(ledState(func(p *policy) { p.Health.Threshold = 1 }))
	for i := range s.workers {
		s.workers[i].vitals.sick = true
	}
	for i := range s.workers {
		var got string
		if s, got = steps(s, fails(i)); strings.Contains(got, "signal") || strings.Contains(got, "kill") {
			t.Errorf("worker %d of a role in which all are ill: %s", i, got)
		}
	}
	s, got := steps(s, passes(2))
	if !strings.Contains(got, "worker-healthy") || s.workers[2].vitals.sick {
		t.Errorf("kv-2 is in health again: %s", got)
	}
	if s, got = steps(s, fails(1)); s.workers[1].lot != lotStopping {
		t.Errorf("kv-1 is ill and kv-2 is not: %s", got)
	}
}

// An ill leader's place is a failover by hang, in the history and for hooks.
func TestIllLeaderIsAHang(t *testing.T) {
	s, _ := steps(ledState(nil), fails(0), fails(0))
	s, got := steps(s, inSeen{owner: hold{101, 8}, active: hold{101, 8}, seats: s.seats,
		ring: append(s.ring, ringView{term: 8, pid: 101, reason: role.ReasonStepDown, claimed: 30, activated: 40})})
	if s.lastEnd.clause() != ", the last one of kv-0 (pid 100): was ended: 2 health probes in a row failed; the last one: 503" {
		t.Errorf("why the last one ended: %q", s.lastEnd.clause())
	}
	if s.led.reason != role.ReasonHang || !strings.Contains(got, "promote(3.8 kv-1 hang)") {
		t.Errorf("reason %q: %s", s.led.reason, got)
	}
}

// What all workers have in common makes all of them ill, the one that has just
// been started too: it is no reason to go from leader to leader.
func TestWhoHasPassedNoProbeIsNotInHealth(t *testing.T) {
	s := ledState(nil)
	s.workers[1].vitals.passed, s.workers[2].vitals.passed = false, false // new lives
	s, got := steps(s, fails(0), fails(0))
	if s.workers[0].lot != lotLeader || strings.Contains(got, "signal") || !strings.Contains(s.workers[0].why, "no standby in health") {
		t.Fatalf("nobody has passed a probe: %v, %s, why %q", s.workers[0].lot, got, s.workers[0].why)
	}
	s, got = steps(s, passes(1), fails(1), fails(0))
	if s.workers[0].lot != lotLeader || strings.Contains(got, "signal") {
		t.Fatalf("kv-1 has failed its last probe: %v, %s", s.workers[0].lot, got)
	}
	frozen, _ := steps(s, passes(1))
	frozen.epoch = uint64(frozen.policy.Grace) + 1
	for _, i := range []int{0, 2} {
		frozen.seats[i].beat = frozen.epoch
	}
	if frozen, got = steps(frozen, fails(0)); frozen.workers[0].lot != lotLeader {
		t.Fatalf("kv-1 has passed and does not beat: %s", got)
	}
	for i := range s.seats {
		s.seats[i].beat = 0
	}
	if s, got = steps(s, passes(1), fails(0)); s.workers[0].lot != lotStopping {
		t.Fatalf("kv-1 has passed: %v, %s", s.workers[0].lot, got)
	}
	s, _ = steps(s, inEnded{0, 100})
	zero := 0
	s, _ = steps(s, inExited{index: 0, pid: 100, exit: Exit{PID: 100, Code: &zero}})
	if e := s.workers[0].lastExit; e == nil || !strings.Contains(e.Cause, "health probes in a row failed") {
		t.Errorf("last exit: %+v", e)
	}
}

// Without a health table who is ready is in health.
func TestNoProbeNoVerdict(t *testing.T) {
	s := ledState(func(p *policy) { p.Health = Probe{} })
	turn := &turn{s: s, now: testNow}
	s.workers[1].vitals.passed = false
	if !turn.inHealth(1) {
		t.Error("kv-1 is ready, and there is no probe")
	}
}

// A worker that is ended for its health counts as one that failed: it waits,
// and in the end it rests.
func TestIllWorkersBackOff(t *testing.T) {
	s, _ := steps(ledState(nil), fails(1), fails(1), inEnded{1, 101})
	zero := 0
	s, got := steps(s, inExited{index: 1, pid: 101, exit: Exit{PID: 101, Code: &zero}})
	if s.workers[1].lot != lotBackoff {
		t.Errorf("it is %v: %s", s.workers[1].lot, got)
	}
}

func words(pid int, text string) inNotify {
	in := inNotify{pid: pid, line: []int{1000, pid}, fields: map[string]string{}}
	for line := range strings.SplitSeq(text, "\n") {
		key, value, _ := strings.Cut(line, "=")
		in.fields[key] = value
	}
	return in
}

func TestWords(t *testing.T) {
	s := ledState(nil)
	s, _ = steps(s, words(101, "STATUS=all \x1b well\nERRNO=5\nRELOADING=1\nWATCHDOG_USEC=2000000"))
	v := s.workers[1].vitals
	if v.errno != 5 || !v.reloading || v.limit != 2*time.Second || !strings.HasPrefix(v.text, "all ") || strings.Contains(v.text, "\x1b") {
		t.Errorf("%+v", v)
	}
	if v.beatBy != testNow.after(2*time.Second) {
		t.Errorf("the new watchdog begins at once: %d", v.beatBy-testNow.Mono)
	}
	s, _ = steps(s, words(101, "READY=1"))
	if s.workers[1].vitals.reloading {
		t.Error("READY=1 ends a reload")
	}
	s, got := steps(s, words(500, "READY=1"), words(500, "STATUS=mine"))
	if strings.Contains(got, "warning") {
		t.Errorf("a stranger's second message within the minute: %s", got)
	}
	if _, got = steps(ledState(nil), words(500, "READY=1")); !strings.Contains(got, "warning") {
		t.Errorf("a stranger's first message: %s", got)
	}
	in := words(101, "MAINPID=700")
	s, got = steps(s, in)
	if s.workers[1].vitals.mainPID != 0 || !strings.Contains(got, "warning") {
		t.Errorf("a foreign MAINPID: %+v, %s", s.workers[1].vitals, got)
	}
	in.mainLine = []int{700, 101}
	if s, _ = steps(s, in); s.workers[1].vitals.mainPID != 700 {
		t.Errorf("its own MAINPID: %+v", s.workers[1].vitals)
	}
	s, got = steps(s, words(101, "WATCHDOG=trigger"))
	if s.workers[1].lot != lotStopping || !strings.Contains(got, "kill group 1") {
		t.Errorf("WATCHDOG=trigger: %s", got)
	}
}

func TestTimeouts(t *testing.T) {
	s := testState()
	s.seats = nil
	s.workers[0].lot, s.workers[0].due = lotStarting, testNow.after(time.Second)
	s.workers[1].lot, s.workers[1].due, s.workers[1].signal = lotStopping, testNow.after(time.Second), "TERM"
	s.workers[2].lot, s.workers[2].due, s.workers[2].signal = lotStopping, testNow.after(time.Second), "KILL"
	for i := range 3 {
		s, _ = steps(s, words(100+i, "EXTEND_TIMEOUT_USEC=60000000"))
	}
	if s.workers[0].due != testNow.after(time.Minute) || s.workers[1].due != testNow.after(time.Minute) || s.workers[2].due != testNow.after(time.Second) {
		t.Errorf("starting %v, stopping %v, killed %v", time.Duration(s.workers[0].due-testNow.Mono),
			time.Duration(s.workers[1].due-testNow.Mono), time.Duration(s.workers[2].due-testNow.Mono))
	}
	if s, _ = steps(s, words(100, "EXTEND_TIMEOUT_USEC=1")); s.workers[0].due != testNow.after(time.Minute) {
		t.Error("an extension never shortens")
	}
}

// A watchdog is watched from ready on, and not kept by another's beat.
func TestWatchdogRow(t *testing.T) {
	s := ledState(nil)
	s.workers[1].lot, s.workers[1].ready = lotStarting, false
	s, _ = steps(s, inSeen{owner: s.owner, active: s.active, seats: s.seats})
	if s.workers[1].vitals.beatBy != testNow.after(time.Second) || s.nextDue() != testNow.after(time.Second) {
		t.Fatalf("beat by %d, next due %d", s.workers[1].vitals.beatBy, s.nextDue())
	}
	later := testNow
	later.Mono += int64(900 * time.Millisecond)
	s, _ = step(s, words(102, "WATCHDOG=1"), later)
	s, _ = step(s, words(101, "WATCHDOG=1"), later)
	later.Mono += int64(900 * time.Millisecond)
	if s, _ = step(s, inDue{}, later); s.workers[1].lot != lotStandby {
		t.Fatal("it kept its promise")
	}
	// The supervisor did not run for a while: nobody is blamed.
	s, _ = step(s, inFrozen{time.Minute}, later)
	later.Mono += int64(time.Minute)
	if s, _ = step(s, inDue{}, later); s.workers[1].lot != lotStandby {
		t.Fatal("it is blamed for a time in which the supervisor did not run")
	}
	later.Mono += int64(time.Second)
	s, effects := step(s, inDue{}, later)
	if s.workers[1].lot != lotStopping || !strings.Contains(describe(effects), "kill group 1") || s.workers[2].lot != lotStandby {
		t.Errorf("%s", describe(effects))
	}
}

// What a person's clock shows decides nothing.
func TestWallClockDecidesNothing(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		s := ledState(nil)
		s.workers[1].lot, s.workers[1].due = lotStarting, testNow.after(time.Second)
		at := testNow
		at.Wall = at.Wall.Add(jump)
		if s, effects := step(s, inDue{}, at); len(effects) != 0 || s.workers[1].lot != lotStarting {
			t.Errorf("jump %v: %s", jump, describe(effects))
		}
	}
}

func TestRestartLists(t *testing.T) {
	for _, c := range []struct {
		restart   Restart
		on, notOn []string
		exit      Exit
		want      lot
	}{
		{RestartAlways, nil, []string{"125"}, Exit{Code: code(125)}, lotStopped},
		{RestartAlways, nil, []string{"125"}, Exit{Code: code(124)}, lotBackoff},
		{RestartNever, []string{"3"}, nil, Exit{Code: code(3)}, lotBackoff},
		{RestartNever, []string{"SIGHUP"}, nil, Exit{Signal: "SIGHUP"}, lotBackoff},
		{RestartAlways, nil, []string{"hup"}, Exit{Signal: "SIGHUP"}, lotStopped},
		{RestartOnFailure, []string{"0"}, nil, Exit{Code: code(0)}, lotBackoff},
		{RestartOnFailure, nil, nil, Exit{Code: code(0)}, lotStopped},
		{RestartAlways, nil, []string{"0"}, Exit{}, lotBackoff},
	} {
		s := workerIn(lotEnded)
		p := *s.policy
		p.Restart, p.RestartOn, p.NoRestartOn = c.restart, c.on, c.notOn
		s.policy = &p
		c.exit.PID = 100
		s, got := steps(s, inExited{index: 0, pid: 100, exit: c.exit})
		if s.workers[0].lot != c.want {
			t.Errorf("%+v: %v, %s", c, s.workers[0].lot, got)
		}
	}
}

func code(n int) *int { return &n }

func TestHealthSettings(t *testing.T) {
	for field, spoil := range map[string]func(*RoleConfig){
		"ready.fd":         func(r *RoleConfig) { r.Ready.FD = 3 },
		"ready.http":       func(r *RoleConfig) { r.Ready.HTTP = "localhost" },
		"ready.tcp":        func(r *RoleConfig) { r.Ready.TCP = "localhost" },
		"ready.exec":       func(r *RoleConfig) { r.Ready.Exec = []string{"x", "{who}"} },
		"health.exec":      func(r *RoleConfig) { r.Health.TCP, r.Health.Exec = "a:1", []string{"x"} },
		"health.fd":        func(r *RoleConfig) { r.Health.FD = 9 },
		"health.threshold": func(r *RoleConfig) { r.Health.Threshold = 0 },
		"health.interval":  func(r *RoleConfig) { r.Health.Interval = 0 },
		"health.timeout":   func(r *RoleConfig) { r.Health.Timeout = -1 },
		"watchdog":         func(r *RoleConfig) { r.Watchdog = 1 },
		"restart_on":       func(r *RoleConfig) { r.RestartOn = []string{"125"} },
		"no_restart_on":    func(r *RoleConfig) { r.NoRestartOn = []string{"PLEASE"} },
	} {
		r := DefaultRole()
		r.Name, r.Command = "kv", []string{"/bin/true"}
		if err := r.Validate(); err != nil {
			t.Fatal(err)
		}
		spoil(&r)
		var bad *ConfigError
		if err := r.Validate(); !errors.As(err, &bad) || bad.Field != field || bad.Role != "kv" {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestFill(t *testing.T) {
	got := fill("http://127.0.0.1:{8080+index}/{worker}/{index}?{pid}{x}", probed{index: 2, pid: 77, worker: "kv-2"})
	if got != "http://127.0.0.1:8082/kv-2/2?77{x}" {
		t.Error(got)
	}
}

func TestTries(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status == 0 {
			time.Sleep(time.Second)
		} else {
			w.WriteHeader(status)
			fmt.Fprint(w, "the disk is full")
		}
	}))
	defer srv.Close()
	r := &roleLoop{}
	p := Probe{HTTP: srv.URL, Timeout: time.Minute}
	try := func() error {
		return r.try(t.Context(), p, probed{index: 3, pid: 9, worker: "kv-3"}, []string{"A=b", "STANDBYD_SEGMENT=x"})
	}
	if err := try(); err != nil {
		t.Errorf("200: %v", err)
	}
	status = http.StatusServiceUnavailable
	if err := try(); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "disk") {
		t.Errorf("503: %v", err)
	}
	status, p.Timeout = 0, 20*time.Millisecond
	if err := try(); err == nil || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Errorf("no answer: %v", err)
	}
	p = Probe{TCP: srv.Listener.Addr().String(), Timeout: time.Minute}
	if err := try(); err != nil {
		t.Errorf("tcp: %v", err)
	}
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	ln.Close()
	p.TCP = ln.Addr().String()
	if try() == nil {
		t.Error("nobody listens, and the probe passed")
	}
	p = Probe{Exec: []string{"/bin/sh", "-c", `test {index} = 3 && test "$A" = b && test -z "$STANDBYD_SEGMENT" && test $STANDBYD_PID = 9`}, Timeout: time.Minute}
	if err := try(); err != nil {
		t.Errorf("exec: %v", err)
	}
	p.Exec = []string{"/bin/sh", "-c", "echo it is ill; exit 3"}
	if err := try(); err == nil || !strings.Contains(err.Error(), "it is ill") || !strings.Contains(err.Error(), "3") {
		t.Errorf("exec that fails: %v", err)
	}
	p.Exec, p.Timeout = []string{"/bin/sh", "-c", "sleep 1000 & sleep 1000"}, 20*time.Millisecond
	if err := try(); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("exec that hangs: %v", err)
	}
}
