package supervisor

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// Snapshot returns the whole visible state: for each role what it published
// last, and the hooks' own status of this moment. It does not block.
func (s *Supervisor) Snapshot() Snapshot {
	snap := Snapshot{
		Supervisor: SupervisorStatus{PID: os.Getpid(), Version: s.config.Version, StartedAt: s.started, ConfigFile: s.config.ConfigFile},
		Roles:      []RoleStatus{},
	}
	if keep := s.keep.Load(); keep != nil {
		snap.Supervisor.Warnings = keep.warnings()
	}
	if s.isRunning() {
		snap.Supervisor.DamagedHistory = s.history.damaged.Load()
	}
	for _, r := range s.loops() {
		status := *r.published.Load()
		status.Plugins = make([]PluginStatus, 0, len(status.hooks))
		for i, h := range status.hooks {
			p := PluginStatus{Name: h.Name, HookStatus: hookStatus(h)}
			if p.LastError == "" && i < len(status.hookErrors) {
				p.LastError = status.hookErrors[i]
			}
			if i < len(status.hookHangs) {
				p.Hangs = max(p.Hangs, status.hookHangs[i])
			}
			status.Plugins = append(status.Plugins, p)
		}
		snap.Roles = append(snap.Roles, status)
	}
	return snap
}

// hookStatus is a hook's own status, with texts that can be shown.
func hookStatus(h NamedHooks) HookStatus {
	st := h.Hooks.Status()
	st.State, st.LastError = printable(st.State), printable(st.LastError)
	return st
}

// budget is what is left of the permitted failovers.
func (s *state) budget(at moment) Budget {
	b := Budget{Failovers: s.policy.Failovers, Per: s.policy.Per.String()}
	for _, when := range s.failovers {
		if when > at.Mono-int64(s.policy.Per) {
			b.Spent++
		}
	}
	if s.control.mode == controlHeld {
		until := at.Wall.Add(time.Duration(s.control.until - at.Mono))
		b.HeldUntil = &until
	}
	return b
}

func (w *worker) showVitals(view *WorkerStatus) {
	v := &w.vitals
	view.Status, view.Reloading, view.Leaving, view.Errno, view.MainPID = v.text, v.reloading, v.stopping, v.errno, v.mainPID
	view.LastSignal = w.signal
	if v.probed || v.failures > 0 && w.ready {
		view.Health = &HealthStatus{Healthy: !v.sick, Failures: v.failures, Error: v.failure}
	}
}

// awaitedHooks names the hooks that have not come up, while nobody can lead
// before they have; empty if the role waits for none.
func (r *roleLoop) awaitedHooks() string {
	if r.st.hooked || r.st.phase >= phaseRenewing || len(r.config.Hooks) == 0 || r.hiring.IsZero() {
		return ""
	}
	var names []string
	for _, h := range r.config.Hooks {
		if hookStatus(h).State == "starting" {
			names = append(names, h.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("waits since %s for the plugin %s to start: whether it may veto is not known before; `standbyd logs %s/plugins` has what it printed",
		r.hiring.Format("15:04:05"), strings.Join(names, ", "), r.config.Name)
}

// publish makes the role's state visible.
func (r *roleLoop) publish() {
	s := &r.st
	status := &RoleStatus{
		Name: r.config.Name, State: s.shown(), Why: s.why, Epoch: s.epoch, Segment: s.segment,
		Workers: make([]WorkerStatus, 0, len(s.workers)), LastFailover: s.last, hooks: r.config.Hooks, hookErrors: s.hookErrors, hookHangs: s.hookHangs,
		Closing: s.phase >= phaseClosing && !s.reopening, Protection: s.protection(), UnderWay: s.underWay(), ReloadFailed: s.reloadFailed,
		comeback: comeback(&s.policy.RoleConfig),
	}
	status.Term = max(s.owner.term, s.active.term)
	if status.Term != 0 {
		status.Token = s.token(status.Term)
	}
	if s.led.term != 0 {
		status.Leader, status.LeaderPID = s.nameOf(s.led.pid), int(s.led.pid)
		status.Term, status.Token = s.led.term, s.token(s.led.term)
	}
	if why := r.awaitedHooks(); why != "" && status.State != RoleLed && status.State != RoleStopped {
		status.Why = why
	}
	at := now()
	status.Pause, status.Budget = s.pauseStatus(at), s.budget(at)
	if r.sup.groups.home == nil && r.sup.config.Cgroups != CgroupsOff && r.sup.isRunning() {
		status.Protection.Missing = append(status.Protection.Missing, "cgroup")
	}
	for i := range s.workers {
		w := &s.workers[i]
		if w.extra && w.pid == 0 {
			continue
		}
		view := WorkerStatus{Name: w.name, PID: w.pid, State: lotNames[w.lot], Ready: s.useful(i), Unseated: s.unseated(i, at.Mono), up: w.ready, Restarts: w.restarts, LastExit: w.lastExit, Why: w.why, Outdated: s.stale(i)}
		if s.toCome(i) {
			view.State, view.Why = WorkerStarting, "waits for its turn: workers are started one by one"
		}
		if w.lot == lotQueued {
			view.Why = "waits for its turn: other workers are being started"
		}
		if w.lot == lotBackoff && w.due != 0 {
			view.Why = fmt.Sprintf("next start in %v", max(time.Duration(w.due-proc.MonoNow()), 0).Round(100*time.Millisecond))
			if w.why != "" {
				view.Why += ": " + w.why
			}
		}
		if w.due != 0 && (w.lot == lotBackoff || w.lot == lotFailed) {
			retry := at.Wall.Add(time.Duration(w.due - at.Mono))
			view.RetryAt = &retry
		}
		if status.Closing && w.lot == lotStopped {
			view.Why = "" // nothing that could be typed starts it
		}
		if view.Why == "" {
			view.Why = s.whyUseless(i, at.Mono)
		}
		if view.Why == "" {
			view.Why = s.outsider(i, at.Mono)
		}
		view.StaysStopped = w.lot == lotStopped && (w.halted || w.rests)
		for _, v := range s.seats {
			if w.pid != 0 && v.pid == uint32(w.pid) {
				behind := int64(s.epoch - v.beat)
				view.Behind = &behind
			}
		}
		if w.pid != 0 {
			started := w.started
			view.StartedAt = &started
			w.showVitals(&view)
		}
		switch {
		case !view.Outdated || view.Why != "":
		case s.roll != nil && !w.halted:
			view.Why = "was started with earlier settings, and is restarted when it is its turn"
		default:
			view.Why = "was started with earlier settings; `standbyd reload` restarts it"
		}
		status.Workers = append(status.Workers, view)
		status.versions = append(status.versions, w.version)
	}
	for i, c := range r.config.Listen {
		l := ListenStatus{Name: c.Name, Network: c.network(), Address: c.Address}
		if h := r.listeners[i]; h != nil {
			l.Address = h.Addr().String()
		}
		status.Listen = append(status.Listen, l)
	}
	status.LogReader = r.logReader()
	for _, p := range r.posts {
		if p.output != nil {
			status.DroppedLines += p.output.Dropped()
		}
	}
	r.published.Store(status)
}
