package supervisor

import (
	"cmp"
	"fmt"
	"time"
)

// What a ready worker is worth: only one that has a seat and beats could lead.
// Whoever is shown or asked as ready is judged by this, as candidates are.

// seatWait is how long a program may be ready without a seat before a wait for
// it counts as in vain: some say that they are ready, and join then.
const seatWait = 5 * time.Second

// silent: the member has not beaten for more than grace.
func (s *state) silent(v seatView) bool { return s.behind(v) > int64(s.policy.Grace) }

// silentFor is how many epochs a member has not beaten, if these are more than
// grace: it hangs or is stopped. Else, and of a worker without a seat, it is 0.
func (s *state) silentFor(i int) int64 {
	if v := s.seatOf(i); v != nil && s.silent(*v) {
		return s.behind(*v)
	}
	return 0
}

// silentSeats counts the members that do not beat.
func (s *state) silentSeats() (n int) {
	for _, v := range s.seats {
		if s.silent(v) {
			n++
		}
	}
	return n
}

// useful: the worker is ready, has a seat and beats.
func (s *state) useful(i int) bool {
	return s.workers[i].ready && s.seatOf(i) != nil && s.silentFor(i) == 0
}

// unseated: the worker is ready for long and has taken no seat.
func (s *state) unseated(i int, now int64) bool {
	return s.workers[i].ready && s.outsider(i, now) != ""
}

// silence is what is said of a member that does not beat.
func (s *state) silence(i int) string {
	return fmt.Sprintf("has not beaten for %d ticks, grace is %d: it hangs or is stopped", s.silentFor(i), s.policy.Grace)
}

// remedy is what to type then.
func (s *state) remedy(i int) string {
	return fmt.Sprintf("`kill -CONT %d`, or `standbyd restart %s/%d`", s.workers[i].pid, s.policy.Name, i)
}

// whyUseless says why a ready worker is not useful.
func (s *state) whyUseless(i int, now int64) string {
	switch w := &s.workers[i]; {
	case !w.ready || s.useful(i):
		return ""
	case s.seatOf(i) != nil:
	case w.lot == lotStopping || w.vitals.stopping:
		return ""
	case w.vitals.joined:
		return "has left its seat in the segment"
	default:
		return cmp.Or(s.outsider(i, now), "has not taken its seat in the segment yet")
	}
	return s.silence(i) + "; " + s.remedy(i)
}

// watchBeats tells once of each standby that does not beat, and when it does
// again; a leader that does not is the claimants' business. Nothing follows from it: an operator may have stopped it, and a worker
// that is to be ended for its silence has a watchdog.
func (t *turn) watchBeats() {
	s := &t.s
	s.silents = s.silentSeats()
	for i := range s.workers {
		w := &s.workers[i]
		silent := w.ready && !t.leads(w) && s.silentFor(i) > 0
		switch {
		case silent == w.vitals.silent || s.phase >= phaseClosing:
		case silent:
			t.emit(Event{Type: EventWorkerUnhealthy, Worker: w.name, PID: w.pid, Text: s.silence(i) + "; " + s.remedy(i)})
			w.vitals.silent = true
		default:
			w.vitals.silent = false
			if w.ready {
				t.emit(Event{Type: EventWorkerHealthy, Worker: w.name, PID: w.pid, Text: "beats again"})
			}
		}
	}
}

// whyNobody says why nobody could lead. Empty: somebody could.
func (t *turn) whyNobody() string {
	s := &t.s
	var reasons []string
	ready, outsiders, processes := 0, 0, 0
	for i := range s.workers {
		w := &s.workers[i]
		if w.extra && w.pid == 0 {
			continue
		}
		why := w.why
		if w.ready && w.pid != 0 {
			if s.useful(i) {
				return ""
			}
			if w.lot != lotStopping {
				ready++
			}
			why = cmp.Or(s.whyUseless(i, t.now.Mono), w.why)
		}
		if w.pid != 0 {
			processes++
		}
		if apart := s.outsider(i, t.now.Mono); apart != "" {
			outsiders++
			why = apart
		}
		if why != "" {
			reasons = append(reasons, fmt.Sprintf("%s %s: %s", w.name, w.lot, why))
		}
	}
	switch {
	case outsiders == 0 || outsiders < processes:
	case ready > 0:
		return noneSeated
	default:
		return noneJoins
	}
	switch {
	case len(reasons) == 0:
		return "no worker is ready yet"
	case ready > 0:
		return "no ready worker could lead: " + fewOf(reasons)
	}
	return "no worker is ready: " + fewOf(reasons)
}
