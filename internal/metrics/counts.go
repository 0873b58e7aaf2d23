package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/standbyd/standbyd/supervisor"
)

// counts are what happened, from the supervisor's events.
type counts struct {
	failovers   *prometheus.CounterVec
	phases      *prometheus.HistogramVec
	exits       *prometheus.CounterVec
	hooks       *prometheus.CounterVec
	warnings    *prometheus.CounterVec
	eventsLost  prometheus.Counter
	leaderships *prometheus.CounterVec
}

// phaseBounds reach from a crash that a waiting standby sees (tens of
// microseconds) to a hang with a long grace.
var phaseBounds = []float64{50e-6, 100e-6, 200e-6, 350e-6, 500e-6, 1e-3, 2e-3, 5e-3, 20e-3, 100e-3, 500e-3, 1, 2, 5, 15, 60}

func newCounts() *counts {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "standbyd", Name: name, Help: help}, labels)
	}
	return &counts{
		failovers:   vec("failovers_total", "Changes of leader, by reason.", "role", "reason"),
		leaderships: vec("leaderships_total", "Leaderships that began.", "role"),
		exits:       vec("worker_exits_total", "Workers that ended: by status 0, by another status, by a signal, or unknown.", "role", "worker", "how"),
		hooks:       vec("hook_calls_total", "Calls of plugins that ended, by moment and outcome.", "role", "plugin", "moment", "outcome"),
		warnings:    vec("warnings_total", "Warnings about a role; without a role, about standbyd itself.", "role"),
		eventsLost:  prometheus.NewCounter(prometheus.CounterOpts{Namespace: "standbyd", Name: "events_lost_total", Help: "Events that these metrics missed because they came too fast."}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "standbyd", Name: "failover_phase_seconds", Buckets: phaseBounds,
			Help: "Time from the end of the old leader until the phase was reached, for changes of leader that were no first start."}, []string{"role", "phase"}),
	}
}

func (c *counts) register(r prometheus.Registerer) {
	r.MustRegister(c.failovers, c.leaderships, c.exits, c.hooks, c.warnings, c.eventsLost, c.phases)
}

func (c *counts) count(e supervisor.Event) {
	c.eventsLost.Add(float64(e.Dropped))
	switch e.Type {
	case supervisor.EventLeaderActive:
		c.leaderships.WithLabelValues(e.Role).Inc()
	case supervisor.EventFailover:
		if e.Record != nil {
			c.failover(e.Record)
		}
	case supervisor.EventWorkerExited:
		c.exits.WithLabelValues(e.Role, e.Worker, how(e.Exit)).Inc()
	case supervisor.EventHook:
		outcome := "done"
		if e.Error != "" {
			outcome = "failed"
		}
		c.hooks.WithLabelValues(e.Role, e.Plugin, e.Text, outcome).Inc()
	case supervisor.EventWarning:
		c.warnings.WithLabelValues(e.Role).Inc()
	}
}

func (c *counts) failover(r *supervisor.Record) {
	if r.From == "" && r.FromPID == 0 {
		return // nobody led before
	}
	c.failovers.WithLabelValues(r.Role, string(r.Reason)).Inc()
	for _, p := range []struct {
		name string
		us   *float64
	}{{"detected", r.DetectedUS}, {"claimed", r.ClaimedUS}, {"active", r.ActiveUS}, {"hooks", r.HooksUS}} {
		if p.us != nil {
			c.phases.WithLabelValues(r.Role, p.name).Observe(*p.us / 1e6)
		}
	}
}

func how(e *supervisor.Exit) string {
	switch {
	case e == nil:
		return "unknown"
	case e.Signal != "":
		return "signal"
	case e.Code == nil:
		return "unknown"
	case *e.Code == 0:
		return "success"
	}
	return "failure"
}
