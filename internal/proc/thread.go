package proc

// Pace is how a thread that must not be late is scheduled.
type Pace uint8

const (
	PaceNormal Pace = 0
	PaceNice   Pace = 1 // nice -20
	PaceFIFO   Pace = 2 // SCHED_FIFO, lowest priority of it
)
