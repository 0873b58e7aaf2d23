package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Ranking says whom a change of leader would choose, and why.
type Ranking struct {
	Role    string      `json:"role"`
	Leader  string      `json:"leader"` // empty if nobody leads
	To      string      `json:"to"`     // the worker that would lead, empty if refused
	Refused string      `json:"refused,omitempty"`
	Note    string      `json:"note,omitempty"` // what would follow that one may not expect
	Workers []Candidate `json:"workers"`        // in the order of their names
}

// Candidate is one worker as a candidate for the leadership.
type Candidate struct {
	Worker     string      `json:"worker"`
	PID        int         `json:"pid"` // 0: no process
	State      WorkerState `json:"state"`
	Ready      bool        `json:"ready"`
	Priority   int         `json:"priority"`
	NoFailover bool        `json:"nofailover"`
	Lag        uint64      `json:"lag"` // how far behind its data is, in its own unit
	// Place is the worker's place in the order of candidates, from 1; 0 if it
	// is none.
	Place  int    `json:"place"`
	Chosen bool   `json:"chosen"`
	Why    string `json:"why"` // why it would be chosen, or not
}

// able: the member could lead if it were named. One that does not beat may be
// stopped, and would keep everybody waiting.
func (s *state) able(v seatView) bool {
	return v.ready && s.living(v.pid) >= 0 && !s.silent(v)
}

// gone: the role has fewer workers than it had, and nobody is in this place.
func (s *state) gone(i int) bool { return s.workers[i].extra && s.workers[i].pid == 0 }

// behind is how many epochs ago the member has beaten last.
func (s *state) behind(v seatView) int64 { return int64(s.epoch - v.beat) }

// barred: the member failed as leader a moment ago.
func (t *turn) barred(v seatView) bool {
	i := t.s.living(v.pid)
	return i >= 0 && t.s.workers[i].barred > t.now.Mono
}

// order compares two candidates as the claimants do: those that failed as
// leader a moment ago go last, then the priority decides, then the lag, then
// who joined first.
func (t *turn) order(a, b seatView) int {
	last := func(v seatView) int {
		if t.barred(v) {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(last(a), last(b)), -cmp.Compare(a.priority, b.priority), cmp.Compare(a.lag, b.lag), cmp.Compare(a.joined, b.joined))
}

// ranked are those that could take over by themselves, the first one first.
// The present leader is none of them.
func (t *turn) ranked() []seatView {
	var all []seatView
	for _, v := range t.s.seats {
		if t.s.able(v) && !v.bars && (t.s.led.term == 0 || v.pid != t.s.led.pid) {
			all = append(all, v)
		}
	}
	slices.SortStableFunc(all, t.order)
	return all
}

// candidate is the seat that goes next among those that have not just failed,
// or -1.
func (t *turn) candidate() int {
	if all := t.ranked(); len(all) > 0 && !t.barred(all[0]) {
		return all[0].seat
	}
	return -1
}

// choose picks the member that a change of leader goes to. The error says of
// each worker, or of the named one, why it cannot be.
func (t *turn) choose(to int) (seatView, error) {
	s := &t.s
	if to >= 0 {
		if w := &s.workers[to]; s.led.term != 0 && s.led.pid == uint32(w.pid) {
			return seatView{}, leadsAlready(w.name)
		}
		if why := t.unable(to); why != "" {
			return seatView{}, fmt.Errorf("%w: %s %s", ErrNoStandby, s.workers[to].name, why)
		}
		return *s.seatOf(to), nil
	}
	if all := t.ranked(); len(all) > 0 {
		return all[0], nil
	}
	var whys []string
	for i := range s.workers {
		if s.led.term != 0 && s.led.worker == i || s.gone(i) {
			continue
		}
		why := t.unable(i)
		if why == "" {
			why = "may not be chosen (nofailover), only named: --to " + s.workers[i].name
		}
		whys = append(whys, s.workers[i].name+" "+why)
	}
	if len(whys) == 0 {
		return seatView{}, fmt.Errorf("%w: the role has one worker only", ErrNoStandby)
	}
	return seatView{}, fmt.Errorf("%w: %s", ErrNoStandby, strings.Join(whys, "; "))
}

// leadsAlready is the refusal to make the leader follow itself. It matches
// ErrNoStandby.
type leadsAlready string

func (e leadsAlready) Error() string {
	return string(e) + " leads already: name a standby, or nobody, and the first in the order of candidates follows"
}

func (leadsAlready) Is(target error) bool { return target == ErrNoStandby }

// unable says why a worker cannot lead next, "" if it can.
func (t *turn) unable(i int) string {
	s := &t.s
	w := &s.workers[i]
	v := s.seatOf(i)
	because := func(text string) string {
		if w.why != "" {
			text += ": " + w.why
		}
		return text
	}
	switch {
	case s.led.term != 0 && s.led.pid == uint32(w.pid):
		return "leads already"
	case w.pid == 0 || w.lot == lotEnded:
		return because("has no process (" + string(lotNames[w.lot]) + ")")
	case w.lot == lotStopping:
		return "is being stopped"
	case v == nil:
		return cmp.Or(s.outsider(i, t.now.Mono), because("has not joined yet"))
	case !v.ready:
		return because("is not ready (" + string(lotNames[w.lot]) + ")")
	case !s.able(*v):
		return s.silence(i)
	}
	return ""
}

// seatOf is the seat of a worker's process, nil if it has not joined.
func (s *state) seatOf(i int) *seatView {
	if s.workers[i].pid == 0 {
		return nil
	}
	var found *seatView
	for k := range s.seats {
		if v := &s.seats[k]; v.pid == uint32(s.workers[i].pid) && (found == nil || v.joined > found.joined) {
			found = v
		}
	}
	return found
}

// rank is the whole table of candidates; to is a worker's index or -1.
func (t *turn) rank(to int) Ranking {
	s := &t.s
	r := Ranking{Role: s.policy.Name, Workers: []Candidate{}}
	if s.led.term != 0 {
		r.Leader = s.nameOf(s.led.pid)
	}
	chosen, err := t.choose(to)
	if busy := t.unchangeable(); busy != nil {
		err = busy
	}
	if err != nil {
		r.Refused = err.Error()
	} else {
		r.To = s.nameOf(chosen.pid)
		r.Note = t.aftermath(chosen)
	}
	all := t.ranked()
	for i := range s.workers {
		if s.gone(i) {
			continue
		}
		w := &s.workers[i]
		c := Candidate{Worker: w.name, PID: w.pid, State: lotNames[w.lot], Ready: w.ready,
			Priority: s.policy.WorkerOptions[i].Priority, NoFailover: s.policy.WorkerOptions[i].NoFailover}
		if v := s.seatOf(i); v != nil {
			c.Priority, c.NoFailover, c.Lag = int(v.priority), v.bars, v.lag
			c.Place = slices.IndexFunc(all, func(o seatView) bool { return o.pid == v.pid }) + 1
		}
		c.Chosen = r.To == w.name
		c.Why = t.verdict(i, c, all, to >= 0)
		r.Workers = append(r.Workers, c)
	}
	return r
}

// verdict is one worker's row in words.
func (t *turn) verdict(i int, c Candidate, all []seatView, named bool) string {
	if why := t.unable(i); why != "" {
		return why
	}
	text := ""
	switch {
	case c.Chosen && named:
		text = "is named"
	case c.NoFailover:
		return "is not chosen (nofailover), only by --to " + c.Worker
	case c.Place == 1 && len(all) == 1:
		text = "is the only candidate"
	case c.Place == 1:
		text = "goes first: " + t.difference(all[0], all[1])
	default:
		before := all[c.Place-2]
		text = fmt.Sprintf("goes after %s: %s", t.s.nameOf(before.pid), t.difference(all[c.Place-1], before))
	}
	if at := t.s.workers[i].barred; at > t.now.Mono {
		until := t.wall(at).Format("15:04:05")
		if rest, same := strings.CutSuffix(text, failedAsLeader); same {
			return fmt.Sprintf("%s%s, so it is tried last until %s", rest, failedAsLeader, until)
		}
		text += fmt.Sprintf("; %s, so it is tried last until %s", failedAsLeader, until)
	}
	return text
}

const failedAsLeader = "failed as leader"

// difference is what decides between two candidates, as the first one's words.
func (t *turn) difference(v, other seatView) string {
	word := func(first bool, yes, no string) string {
		if first {
			return yes
		}
		return no
	}
	switch {
	case t.barred(v) != t.barred(other):
		return word(t.barred(other), "has not failed as leader", failedAsLeader)
	case v.priority != other.priority:
		return fmt.Sprintf("%s priority, %d", word(v.priority > other.priority, "higher", "lower"), v.priority)
	case v.lag != other.lag:
		return fmt.Sprintf("%s lag, %d", word(v.lag < other.lag, "smaller", "larger"), v.lag)
	}
	return word(v.joined < other.joined, "joined earlier", "joined later")
}

// aftermath warns of a policy that would take the lease away again.
func (t *turn) aftermath(to seatView) string {
	s := &t.s
	for _, v := range s.seats {
		i := s.living(v.pid)
		if i < 0 || v.pid == to.pid || !v.ready || v.bars {
			continue
		}
		switch {
		case s.policy.Preempt == PreemptLowestPID && v.pid < to.pid:
			return fmt.Sprintf("preempt = %q: %s has a lower pid and will take the lease back; `standbyd pause %s` keeps it from that", s.policy.Preempt, s.workers[i].name, s.policy.Name)
		case s.policy.Preempt == PreemptPriority && v.priority > to.priority:
			return fmt.Sprintf("preempt = %q: %s has a higher priority and will take the lease back; `standbyd pause %s` keeps it from that", s.policy.Preempt, s.workers[i].name, s.policy.Name)
		}
	}
	return ""
}
