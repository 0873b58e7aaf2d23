package heartbeat

import "github.com/standbyd/standbyd/coord/shm"

// Watchdog finds members whose beats stay behind. Its zero value reports
// nothing; use NewWatchdog. Not safe for concurrent use.
type Watchdog struct {
	table    *Table
	reported []uint64 // by seat: the phase word under which it was reported, 0 none
}

// NewWatchdog watches the members of t.
func NewWatchdog(t *Table) *Watchdog {
	return &Watchdog{table: t, reported: make([]uint64, len(t.seg.Seats))}
}

// Late is a member that is behind, with the work that it had in flight.
type Late struct {
	Member
	Behind int64 // epochs
}

// Scan reports the members that are more than grace epochs behind, each once
// until it beats again.
func (w *Watchdog) Scan(grace uint64) []Late {
	if w.table == nil {
		return nil
	}
	seg := w.table.seg
	now := seg.Epoch.Load()
	var late []Late
	for i := range seg.Seats {
		// Of a member that is in time, only the beat is loaded. One that has
		// beaten within grace is not late even if the row is another's by now.
		seat := &seg.Seats[i]
		if behind := shm.Behind(now, uint32(seat.Beat.Load())&(1<<31-1)); behind <= 0 || uint64(behind) <= grace {
			if w.reported[i] != 0 {
				w.reported[i] = 0
			}
			continue
		}
		late = w.judge(late, i, now, grace)
	}
	return late
}

// judge looks at the whole row of a seat whose beat is old.
func (w *Watchdog) judge(late []Late, i int, now, grace uint64) []Late {
	seat := &w.table.seg.Seats[i]
	phase := seat.Phase.Load()
	m, ok := read(seat, i)
	if !ok {
		w.reported[i] = 0
		return late
	}
	behind := shm.Behind(now, uint32(m.BeatEpoch)&(1<<31-1))
	if behind <= 0 || uint64(behind) <= grace {
		w.reported[i] = 0
		return late
	}
	if w.reported[i] == phase {
		return late
	}
	w.reported[i] = phase
	return append(late, Late{Member: m, Behind: behind})
}
