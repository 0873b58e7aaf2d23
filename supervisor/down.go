package supervisor

import (
	"fmt"
	"strings"
)

// WhyDown says why a worker is of no use until somebody does something, and
// what to type: it was stopped, has failed, or takes no seat in its segment. It
// is "" for all others. One that has failed is started again by itself at RetryAt.
func (w WorkerStatus) WhyDown() string {
	if w.Unseated {
		return w.Name + " is ready and takes no seat in the segment, so it never leads: does the program use package coord? (docs/worker-contract.md)"
	}
	if !w.StaysStopped && w.State != WorkerFailed {
		return ""
	}
	text := stateAndWhy(w)
	if start := "`standbyd start " + w.Name + "`"; !strings.Contains(text, start) {
		verb := "starts it"
		if w.State == WorkerFailed {
			verb = "tries at once"
		}
		text += "; " + start + " " + verb
	}
	return text
}

// stateAndWhy is a worker in words: "kv-1 is failed: ...", or what its reason
// says by itself.
func stateAndWhy(w WorkerStatus) string {
	for _, begin := range []string{"was ", "has ", "is "} {
		if strings.HasPrefix(w.Why, begin) {
			return w.Name + " " + w.Why
		}
	}
	text := fmt.Sprintf("%s is %s", w.Name, w.State)
	if w.Why != "" {
		text += ": " + w.Why
	}
	return text
}

// allDown: nobody leads, and nobody will before somebody starts a worker, or the
// time has come at which a failed one is tried again.
func (s *state) allDown() bool {
	if s.led.term != 0 || s.owner.pid != 0 || s.phase >= phaseRenewing {
		return false
	}
	for i := range s.workers {
		switch w := &s.workers[i]; {
		case w.extra && w.pid == 0, w.lot == lotFailed, w.lot == lotStopped && (w.halted || w.rests) && !s.toCome(i):
		default:
			return false
		}
	}
	return true
}

// whyAllDown is why nobody will lead then.
func (t *turn) whyAllDown() string {
	s := &t.s
	var each []string
	for i := range s.workers {
		w := &s.workers[i]
		if w.extra {
			continue
		}
		each = append(each, WorkerStatus{Name: w.name, State: lotNames[w.lot], StaysStopped: w.lot == lotStopped, Why: w.why}.WhyDown())
	}
	return fewOf(each)
}

// fewOf joins the first ones, and counts the others: each has its own text.
func fewOf(each []string) string {
	if n := len(each) - fewReasons; n > 0 {
		each = append(each[:fewReasons:fewReasons], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(each, "; ")
}
