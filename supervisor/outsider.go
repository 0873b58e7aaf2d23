package supervisor

import "time"

// An outsider is a program that runs as a worker and takes no seat in the
// segment, as every program does that does not use package coord: it never leads.

// joinWait is how long a program that has not said that it is ready may take
// to join before it is shown as an outsider: some warm up first.
const joinWait = 10 * time.Second

// doesItUse is the question that ends what is said of outsiders.
const doesItUse = "does the program use package coord? (docs/worker-contract.md)"

const (
	noSeat     = "is ready and has taken no seat in the segment; " + doesItUse
	notJoined  = "runs for more than 10s and has not joined the role; " + doesItUse
	notEither  = "has not joined the role, nor did its process before; " + doesItUse
	diedApart  = "; it had not joined the role: " + doesItUse
	noneJoins  = "no worker joins the role, and only members lead: " + doesItUse
	noneSeated = "no ready worker takes a seat in the segment, and without one nobody leads: " + doesItUse
)

// outsider says so of a worker that is one by now, "" of any other. Whoever had
// a seat in this life is none, and who is being ended may have left it.
func (s *state) outsider(i int, now int64) string {
	w := &s.workers[i]
	switch {
	case w.pid == 0 || w.vitals.joined || w.vitals.stopping || s.seated(w):
		return ""
	case w.ready && w.lot != lotStopping && now-w.readyAt >= int64(seatWait):
		return noSeat
	case w.ready || w.lot != lotStarting || w.startAt == 0:
		return ""
	case w.outside:
		return notEither
	case now-w.startAt >= int64(joinWait):
		return notJoined
	}
	return ""
}

// noteSeats remembers who has had a seat in this life.
func (s *state) noteSeats() {
	for i := range s.workers {
		if w := &s.workers[i]; !w.vitals.joined && s.seated(w) {
			w.vitals.joined, w.outside = true, false
		}
	}
}
