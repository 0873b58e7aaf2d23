package election

// Fault is what a drill orders of a leader's own process. The numbers are in
// files and append-only.
type Fault uint8

const (
	FaultNone Fault = 0
	FaultHang Fault = 1 // its work comes to a stop, its beats go on
	FaultExit Fault = 2 // it ends by itself, at once
)

func (f Fault) String() string {
	switch f {
	case FaultNone:
		return "none"
	case FaultHang:
		return "hang"
	case FaultExit:
		return "exit"
	}
	return "unknown"
}

// faultShift: the fault word is fault<<56 | term. It binds the leader of that
// term alone, so an order that comes late or is forgotten hits nobody else.
const faultShift = 56

// OrderFault asks the leader of term to break, and wakes it. Like the control
// word it is the supervisor's alone: whoever can write it can also close the
// role, or take the lease. FaultNone takes an order back; who has begun to
// obey goes on.
func (e *Election) OrderFault(term uint64, f Fault) {
	w := uint64(f)<<faultShift | term
	if f == FaultNone {
		w = 0
	}
	e.seg.Control.Fault.Store(w)
	e.seg.WakeAll()
}

// OrderedFault is what the leader of term is asked to do, FaultNone if nothing.
// One load.
func (e *Election) OrderedFault(term uint64) Fault {
	w := e.seg.Control.Fault.Load()
	if w == 0 || w&(1<<faultShift-1) != term {
		return FaultNone
	}
	return Fault(w >> faultShift)
}
