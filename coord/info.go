package coord

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/standbyd/standbyd/coord/role"
)

// Info is who leads, as this process sees it at one moment.
type Info struct {
	// Name is the leader's, as this process would call it: the worker's name,
	// or "pid N" without a supervisor. Empty if nobody holds the lease.
	Name string
	// PID is the leader's process, 0 if nobody holds the lease.
	PID int
	// Token is that of the current leadership, or of the last one while
	// nobody holds the lease. Zero before the first.
	Token role.Token
	// Active: the active word names the leader, it may act. False from the
	// claim until its predecessor is fenced and its hooks have agreed.
	Active bool
	// Self: it is this member.
	Self bool
}

// Leader says who leads. It reads a few words of the segment, waits for
// nobody, and can be outdated when it returns: what must not be done twice is
// guarded by Leadership.Check or by the token. While nobody holds the lease,
// the error is ErrNoLeader, and Info has the last token.
func (m *Member) Leader() (Info, error) {
	if err := m.trouble(); err != nil {
		return Info{}, err
	}
	i := m.info()
	if i.PID == 0 {
		return i, ErrNoLeader
	}
	return i, nil
}

func (m *Member) info() Info {
	pid, term := m.elec.Owner()
	i := Info{PID: int(pid), Token: role.MakeToken(m.params.Generation, term)}
	if term == 0 {
		i.Token = 0
	}
	if pid == 0 {
		return i
	}
	apid, aterm := m.elec.Active()
	i.Active = apid == pid && aterm == term
	i.Name = m.nameOf(pid)
	i.Self = pid == m.pid
	return i
}

// nameOf is how this process calls the owner with pid.
func (m *Member) nameOf(pid uint32) string {
	if pid == m.pid {
		return m.name
	}
	if m.env.role != "" {
		for _, o := range m.table.Members() {
			if uint32(o.Identity.PID) == pid && o.Index >= 0 {
				return m.env.role + "-" + strconv.Itoa(o.Index)
			}
		}
	}
	return fmt.Sprintf("pid %d", pid)
}

// Observe yields who leads, at once and after each change, until ctx ends, the
// member closes or the loop breaks. The latest wins: a slow loop misses what
// came between, and never slows the election. Changes are seen at the event
// that made them, and at the latest with the next epoch.
func (m *Member) Observe(ctx context.Context) iter.Seq[Info] {
	return func(yield func(Info) bool) {
		var last Info
		for first := true; ; {
			changed := m.news.wait()
			if m.stopped(ctx) != nil {
				return
			}
			if i := m.info(); first || i != last {
				first, last = false, i
				if !yield(i) {
					return
				}
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
			case <-m.closing:
			}
		}
	}
}

// tellNewLeaders is the observe goroutine of Callbacks.OnNewLeader.
func (m *Member) tellNewLeaders(tell func(string)) {
	var last role.Token
	for i := range m.Observe(context.Background()) {
		if i.Active && i.Token != last {
			last = i.Token
			tell(i.Name)
		}
	}
}
