package heartbeat

import "github.com/standbyd/standbyd/coord/shm"

// Watchdog finds members whose beats stay behind. Its zero value reports
// nothing; use NewWatchdog. Not safe for concurrent use.
type Watchdog struct {
	table    *Table
	reported map[int]uint32 // seat -> incarnation that was reported
}

// NewWatchdog watches the members of t.
func NewWatchdog(t *Table) *Watchdog { return &Watchdog{table: t, reported: map[int]uint32{}} }

// Late is a member that is behind, with the work that it had in flight.
type Late struct {
	Member
	Behind int64 // epochs
}

// Scan reports the members that are more than grace epochs behind, each once
// until it beats again.
func (w *Watchdog) Scan(grace uint64) []Late {
	seg := w.table.seg
	now := seg.Epoch.Load()
	var late []Late
	for i := range seg.Seats {
		m, ok := read(&seg.Seats[i], i)
		if !ok {
			delete(w.reported, i)
			continue
		}
		behind := shm.Behind(now, uint32(m.BeatEpoch)&(1<<31-1))
		if behind <= 0 || uint64(behind) <= grace {
			delete(w.reported, i)
			continue
		}
		if inc, ok := w.reported[i]; ok && inc == m.Incarnation {
			continue
		}
		w.reported[i] = m.Incarnation
		late = append(late, Late{Member: m, Behind: behind})
	}
	return late
}
