package supervisor

import (
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
)

const (
	causeUnseen = "ended while no standbyd ran, nobody saw how"
	causeEnded  = "was ended by standbyd, which could not adopt it"
)

// recordEnd writes the end of a listed process that is not adopted to the death
// history, and returns what status shows of it: it ended while nobody watched,
// or this supervisor has ended it. Called between furnish and run.
func (r *roleLoop) recordEnd(w listedWorker, led, ended bool) *Exit {
	path, lines := r.paths.deaths(w.Name), []string(nil)
	log := &deathLog{path, -1}
	if w.Index < len(r.posts) {
		log, lines = &r.posts[w.Index].deaths, lastWords(r.posts[w.Index].output)
	}
	d := Death{At: time.Now(), PID: w.Identity.PID, Cause: causeUnseen, Unseen: true, Leader: led, Lines: clipped(lines)}
	d.UptimeMS = max(d.At.Sub(w.StartedAt).Milliseconds(), 0)
	if ended {
		d.Cause, d.Unseen, d.Signal = causeEnded, false, "SIGKILL"
	}
	// The supervisor before may have seen the end, and died before it took the
	// process off the list.
	if known, _, err := readDeaths(path); err == nil && len(known) > 0 {
		if last := known[len(known)-1]; last.PID == d.PID && !last.At.Before(w.StartedAt) {
			return last.exit()
		}
	}
	if err := log.add(d); err != nil {
		r.emit(Event{Type: EventWarning, Worker: w.Name, Text: err.Error()})
	}
	return d.exit()
}

// ledLast tells of the processes of a segment who led and has not given its
// term back.
func ledLast(e *election.Election) func(pid int) bool {
	last := map[uint32]ringView{}
	for _, v := range ringOf(e) {
		if v.term >= last[v.pid].term {
			last[v.pid] = v
		}
	}
	return func(pid int) bool {
		v, ok := last[uint32(pid)]
		return ok && v.activated != 0 && v.retired == 0
	}
}

// ledLastIn is ledLast of a segment that nobody uses any more.
func (r *roleLoop) ledLastIn(path string) func(pid int) bool {
	led := func(int) bool { return false }
	seg, err := shm.OpenReadOnly(path)
	if err != nil {
		return led
	}
	u := &segmentUse{seg: seg, election: election.Attach(seg)}
	defer seg.Close()
	_ = u.touch(func() { led = ledLast(u.election) })
	return led
}
