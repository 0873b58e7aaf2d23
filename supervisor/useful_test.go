package supervisor

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

// silent makes the members of those places 40 epochs old.
func silent(s state, places ...int) state {
	s.epoch = 40
	s.seats = slices.Clone(s.seats)
	for i := range s.seats {
		if s.seats[i].beat = s.epoch; slices.Contains(places, i) {
			s.seats[i].beat = 0
		}
	}
	return s
}

func look(s state) input {
	return inSeen{owner: s.owner, active: s.active, seats: s.seats, epoch: s.epoch}
}

// It is told once that a member does not beat, and once that it does again.
func TestSilenceIsToldOnce(t *testing.T) {
	s := silent(ledState(nil), 1)
	s, got := steps(s, look(s))
	if !strings.Contains(got, "worker-unhealthy") || s.useful(1) || !s.useful(2) {
		t.Errorf("useful: %v, %v; %s", s.useful(1), s.useful(2), got)
	}
	if why := s.whyUseless(1, testNow.Mono); !strings.Contains(why, "has not beaten for 40 ticks") || !strings.Contains(why, "kill -CONT 101") || !strings.Contains(why, "restart kv/1") {
		t.Errorf("what to type: %q", why)
	}
	if s, got = steps(s, look(s)); strings.Contains(got, "worker-unhealthy") {
		t.Errorf("told twice: %s", got)
	}
	s = silent(s)
	if s, got = steps(s, look(s)); !strings.Contains(got, "worker-healthy") || !s.useful(1) {
		t.Errorf("it beats again: %s", got)
	}
}

// A role without a leader does not promise one of those that do not beat, or
// have no seat.
func TestUselessStandbysTakeNothingOver(t *testing.T) {
	s := silent(testState(), 0, 1, 2)
	s, _ = steps(s, look(s))
	if !strings.Contains(s.why, "no ready worker could lead: kv-0 standby: has not beaten for 40 ticks") {
		t.Errorf("all are silent: %q", s.why)
	}
	s = silent(s, 0, 1)
	if s, _ = steps(s, look(s)); !strings.Contains(s.why, "about to take over") {
		t.Errorf("kv-2 beats: %q", s.why)
	}
	s = testState()
	s.seats = nil
	for i := range s.workers {
		s.workers[i].vitals.said = true
	}
	if s, _ = steps(s, look(s)); strings.Contains(s.why, "package coord") || !strings.Contains(s.why, "kv-0 standby: has not taken its seat in the segment yet") {
		t.Errorf("nobody has a seat yet: %q", s.why)
	}
	if now := testNow.Mono; s.unseated(0, now) || !s.unseated(0, now+int64(seatWait)) {
		t.Error("a program may be quicker with its word than with its seat, and not for long")
	}
	if s, _ = step(s, look(s), moment{testNow.Wall, testNow.after(seatWait)}); s.why != noneSeated {
		t.Errorf("nobody has a seat: %q", s.why)
	}
}

// A standby that is stopped is shown as what it is, by the next looks; and the
// leader stays.
func TestStoppedStandbyIsNotReady(t *testing.T) {
	w := start(t, newConfig(t, "good"))
	r := w.until("it is full", full)
	i := slices.IndexFunc(r.Workers, func(w WorkerStatus) bool { return w.State == WorkerStandby })
	pid := r.Workers[i].PID
	syscall.Kill(pid, syscall.SIGSTOP)
	now := w.until("it is not ready", func(r RoleStatus) bool { return !r.Workers[i].Ready })
	if got := now.Workers[i]; got.PID != pid || got.State != WorkerStandby || !strings.Contains(got.Why, "hangs or is stopped") || now.Leader != r.Leader {
		t.Errorf("%+v", now)
	}
	syscall.Kill(pid, syscall.SIGCONT)
	w.until("it is ready again", func(r RoleStatus) bool {
		return r.Workers[i].Ready && r.Workers[i].PID == pid && r.Workers[i].Why == ""
	})
	w.shutdown()
}
