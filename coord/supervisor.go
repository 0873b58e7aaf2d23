package coord

import (
	"os"

	"github.com/standbyd/standbyd/internal/proc"
)

// supervisorSeat is which supervisor this process has last dealt with.
type supervisorSeat struct {
	id          proc.Identity
	incarnation uint32
}

// launcher is the supervisor that launched this process: it holds the
// listeners that it passed on. If another one has taken the seat already, the
// zero value says that it must be told.
func (m *Member) launcher() supervisorSeat {
	if s, ok := m.table.Supervisor(); ok && s.Identity.PID == os.Getppid() {
		return supervisorSeat{s.Identity, s.Incarnation}
	}
	return supervisorSeat{}
}

// watchSupervisor notices that seat 0 has another holder, and hands it the
// role's listeners: a new supervisor has only what its workers give back.
func (m *Member) watchSupervisor(known *supervisorSeat) {
	s, ok := m.table.Supervisor()
	if !ok {
		return
	}
	if now := (supervisorSeat{s.Identity, s.Incarnation}); now != *known {
		*known = now
		what := sayStore | sayLook
		if m.ready.Load() {
			what |= sayReady
		}
		m.notify.say(what)
	}
}
