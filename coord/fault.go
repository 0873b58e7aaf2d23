package coord

import (
	"fmt"
	"os"

	"github.com/standbyd/standbyd/coord/election"
)

// DrillStatus is the exit status of a process that a drill told to end by
// itself (`standbyd drill ROLE --fault exit`).
const DrillStatus = 70

// Bits of Member.bars.
const (
	barGone uint32 = 1 << iota // the segment is gone: no word of it is touched
	barHang                    // a drill has brought the work to a stop
)

// bar is what a call of the worker does while bars is set: under a hang it does
// not return, as in a process whose work is stuck. A lead that waits for it is
// freed by the end of the process alone, by the fence or by the drain limit; one
// that returned all the same frees what else of its work is stuck. True: the
// segment is gone.
func (m *Member) bar() (gone bool) {
	if l := m.hung.Load(); l != nil {
		<-l.over
	}
	return m.bars.Load()&barGone != 0
}

// unhang lets the process go on after the leadership that was hung is over.
func (m *Member) unhang() {
	if m.hung.Swap(nil) != nil {
		m.bars.And(^barHang)
	}
}

// obey does what a drill orders of the leader of this very term. The order
// stands in a word that only those can write who could close the role as well.
// Part of the beat goroutine, which a hang leaves alone.
func (m *Member) obey(l *Leadership) {
	f := m.elec.OrderedFault(l.term)
	if f == election.FaultNone || l.at() != phaseLeading {
		return
	}
	switch f {
	case election.FaultHang:
		if m.hung.CompareAndSwap(nil, l) {
			m.bars.Or(barHang)
			fmt.Fprintf(os.Stderr, "standbyd: %s: a drill hangs this process: no call of the worker into coord returns any more\n", m.name)
		}
	case election.FaultExit:
		fmt.Fprintf(os.Stderr, "standbyd: %s: a drill ends this process: exiting with status %d\n", m.name, DrillStatus)
		os.Exit(DrillStatus)
	}
}
