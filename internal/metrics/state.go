package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/standbyd/standbyd/supervisor"
)

// What a scrape reads from the snapshot and the loops' counters.
var (
	roleState = desc("role_state", "1 for the state in which the role is, 0 for all others.", "role", "state")
	roleTerm  = desc("role_term", "Term of the present or the last leader; it rises by one with each leadership.", "role")
	roleEpoch = desc("role_epoch", "Epoch of the role's segment, which rises by one with each tick.", "role")
	leaderIs  = desc("worker_leader", "1 for the worker that leads its role, 0 for all others.", "role", "worker")

	workerState   = desc("worker_state", "1 for the state in which the worker is, 0 for all others.", "role", "worker", "state")
	workerReady   = desc("worker_ready", "1 if the worker could lead now: it is ready, in its seat, and beats.", "role", "worker")
	workerBehind  = desc("worker_beat_age_epochs", "Epochs since the worker's last beat: 0 or 1 in health.", "role", "worker")
	workerStarted = desc("worker_restarts_total", "Times that the worker was started again after an end that nobody asked for.", "role", "worker")

	pluginState = desc("plugin_info", "Always 1; the label says what the plugin does.", "role", "plugin", "state")

	dropped = desc("log_lines_dropped_total", "Lines of the role's workers that were dropped because the log could not be written as fast.", "role")

	loopBusy   = desc("role_loop_busy_seconds_total", "Time in which the role's loop was deciding or acting; its rate is the loop's saturation.", "role")
	loopInputs = desc("role_loop_inputs_total", "Messages that the role's loop has decided about.", "role")
	tickLate   = desc("tick_lateness_seconds", "How long after it was due the role's loop served a tick.", "role")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("standbyd_"+name, help, labels, nil)
}

var roleStates = []supervisor.RoleState{supervisor.RoleStarting, supervisor.RoleLed, supervisor.RoleVacant,
	supervisor.RoleSwitching, supervisor.RoleHeld, supervisor.RolePaused, supervisor.RoleStopped}

var workerStates = []supervisor.WorkerState{supervisor.WorkerStarting, supervisor.WorkerStandby, supervisor.WorkerLeader,
	supervisor.WorkerDraining, supervisor.WorkerBackoff, supervisor.WorkerStopping, supervisor.WorkerStopped, supervisor.WorkerFailed}

// stateCollector turns a snapshot into metrics.
type stateCollector struct{ source Source }

func (c stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{roleState, roleTerm, roleEpoch, leaderIs, workerState, workerReady, workerBehind,
		workerStarted, pluginState, dropped, loopBusy, loopInputs, tickLate} {
		ch <- d
	}
}

func (c stateCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	for _, r := range c.source.Snapshot().Roles {
		for _, s := range roleStates {
			gauge(roleState, is(r.State == s), r.Name, string(s))
		}
		gauge(roleTerm, float64(r.Term), r.Name)
		gauge(roleEpoch, float64(r.Epoch), r.Name)
		counter(dropped, float64(r.DroppedLines), r.Name)
		for _, w := range r.Workers {
			for _, s := range workerStates {
				gauge(workerState, is(w.State == s), r.Name, w.Name, string(s))
			}
			gauge(leaderIs, is(r.Leader == w.Name), r.Name, w.Name)
			gauge(workerReady, is(w.Ready), r.Name, w.Name)
			counter(workerStarted, float64(w.Restarts), r.Name, w.Name)
			if w.Behind != nil {
				gauge(workerBehind, float64(*w.Behind), r.Name, w.Name)
			}
		}
		for _, p := range r.Plugins {
			gauge(pluginState, 1, r.Name, p.Name, p.State)
		}
	}
	for _, s := range c.source.Stats() {
		counter(loopBusy, s.Busy.Seconds(), s.Role)
		counter(loopInputs, float64(s.Inputs), s.Role)
		buckets := make(map[float64]uint64, len(s.Late))
		for i, n := range s.Late {
			buckets[supervisor.LatenessBounds[i].Seconds()] = n
		}
		ch <- prometheus.MustNewConstHistogram(tickLate, s.Ticks, s.LateSum.Seconds(), buckets, s.Role)
	}
}

func is(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
