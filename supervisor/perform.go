package supervisor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/proc"
)

// perform does one effect. What it brings about is queued as an input.
func (r *roleLoop) perform(e effect) {
	switch e := e.(type) {
	case doQueue:
		if r.sup.turns.ask(r, e.index) {
			r.next(inTurn(e))
		}
	case doYield:
		r.sup.turns.end()
	case doLaunch:
		pid, err := r.launch(e.index)
		if err != nil {
			r.next(inUnlaunched{index: e.index, err: printableError(err), jitter: rand.Float64()})
			return
		}
		r.next(inLaunched{index: e.index, pid: pid})
	case doBury:
		r.bury(e)
	case doProbe:
		r.probe(e.index, e.kind)
	case doAdmit:
		r.touch(func(u *segmentUse) { u.table.Admit(e.seat, e.pid) })
		r.next(inLook{})
	case doList:
		if err := r.saveWorkers(); err != nil {
			r.emit(Event{Type: EventWarning, Text: err.Error()})
		}
	case doRelease:
		r.release(e.index)
	case doSignal:
		r.signal(e)
	case doKillGroup:
		if l := r.posts[e.index].life; l != nil {
			if err := l.process.KillGroup(); err != nil && !errors.Is(err, launch.ErrReaped) {
				r.emit(Event{Type: EventWarning, Worker: r.st.workers[e.index].name, Text: err.Error()})
			}
		}
	case doHit:
		in := inHit{term: e.term, zero: proc.MonoNow()}
		in.err = r.hit(e)
		r.next(in)
	case doLast:
		if r.seg != nil && r.seg.broken == nil {
			r.touch(func(u *segmentUse) { u.table.SetLast(e.seat, e.pid, e.on) })
		}
	case doUnorder:
		r.touch(func(u *segmentUse) { u.election.OrderFault(0, election.FaultNone) })
	case doControl:
		r.setControl(e.word)
	case doJob:
		r.queue.put(e)
	case doRenew:
		in := inRenewed{}
		if in.err = r.renewSegment(); in.err == nil {
			in.generation, in.segment = r.seg.generation(), r.seg.seg.Path()
		}
		r.next(in)
	case doFetchSockets:
		r.next(r.fetchSockets())
	case doBindSockets:
		err := r.bindSockets()
		r.next(inSockets{ok: err == nil, err: err})
	case doReload:
		r.next(e.in)
	case doHire:
		r.hireAnew()
	case doRecord:
		if err := r.sup.history.append(e.record); err != nil {
			r.emit(Event{Type: EventWarning, Text: err.Error()})
		}
	case doEmit:
		r.emit(e.event)
	case doAnswer:
		r.publish() // whoever gets the answer sees what it has brought about
		e.send()
	case doClear:
		r.clear()
	default:
		panic(fmt.Sprintf("supervisor: an effect that nobody performs: %T", e))
	}
}

func (r *roleLoop) hit(e doHit) error {
	l := r.posts[e.index].life
	if l == nil {
		return ErrNoProcess
	}
	switch e.fault {
	case FaultHang:
		return r.touch(func(u *segmentUse) { u.election.OrderFault(e.term, election.FaultHang) })
	case FaultExit:
		return r.touch(func(u *segmentUse) { u.election.OrderFault(e.term, election.FaultExit) })
	case FaultStop:
		return l.process.Signal(syscall.SIGSTOP)
	}
	return l.process.Signal(syscall.SIGKILL)
}

func (r *roleLoop) signal(e doSignal) {
	w := &r.st.workers[e.index]
	var err error
	if l := r.posts[e.index].life; l == nil {
		err = ErrNoProcess
	} else {
		err = l.process.Signal(e.sig)
	}
	if e.reply != nil {
		e.reply <- answer[signalled]{signalled{w.name, w.pid}, err}
	}
}
