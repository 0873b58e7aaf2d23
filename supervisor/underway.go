package supervisor

import (
	"cmp"
	"fmt"
	"strings"
)

// toCome: the place is empty, and the change of workers that is under way fills
// it when it is its turn.
func (s *state) toCome(i int) bool {
	w := &s.workers[i]
	return s.roll != nil && i != s.roll.index && s.emptyPlace(w) && w.lot == lotStopped
}

// emptyPlace: a change of workers starts this one before it turns to others.
func (s *state) emptyPlace(w *worker) bool {
	return !w.extra && !w.halted && !s.keptEmpty(w) && w.pid == 0 && w.version != s.version &&
		(w.lot == lotBackoff || w.lot == lotFailed || w.lot == lotStopped && (w.lastExit == nil || w.version == ""))
}

// underWay tells of the change of workers that is under way, empty if there is
// none: what was asked for, whom it waits for, and whose turn comes after.
func (s *state) underWay() string {
	r := s.roll
	if r == nil {
		return ""
	}
	what := cmp.Or(r.what, "a change of workers")
	if r.failure != nil {
		what = "the way back to the settings before"
	}
	text := fmt.Sprintf("%s is under way: %s", what, s.rollReason())
	var rest []string
	for i := range s.workers {
		w := &s.workers[i]
		if i != r.index && (s.toCome(i) || !w.halted && s.stale(i) || w.extra && w.pid != 0) {
			rest = append(rest, w.name)
		}
	}
	if n := len(rest) - fewReasons; n > 0 {
		rest = append(rest[:fewReasons], fmt.Sprintf("%d more", n))
	}
	if len(rest) > 0 {
		text += "; after that: " + strings.Join(rest, ", ")
	}
	return text
}
