// Package metrics shows what a supervisor does as Prometheus metrics.
//
// States are read from the supervisor's snapshot at each scrape; what happens
// between two scrapes is counted from its events. Nothing here takes part in
// a decision, and a slow scraper delays nobody.
//
// Labels have few values: role, worker and plugin names of the config, and the
// fixed words of states, reasons and phases. Pids and tokens are no labels.
package metrics

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/standbyd/standbyd/supervisor"
)

// Source is what is shown: a *supervisor.Supervisor.
type Source interface {
	Snapshot() supervisor.Snapshot
	Stats() []supervisor.RoleStats
	Subscribe(ctx context.Context) <-chan supervisor.Event
}

var _ Source = (*supervisor.Supervisor)(nil)

// Metrics are the metrics of one supervisor.
type Metrics struct {
	registry *prometheus.Registry
	source   Source
	counts   *counts
}

// New makes the metrics of a supervisor. Nothing is counted before Follow.
func New(source Source, version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), source: source, counts: newCounts()}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "standbyd_build_info", Help: "Always 1; the label is the version of standbyd.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(build, stateCollector{source},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.counts.register(m.registry)
	return m
}

// Follow counts events until ctx ends.
func (m *Metrics) Follow(ctx context.Context) {
	for e := range m.source.Subscribe(ctx) {
		m.counts.count(e)
	}
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Gatherer gives the metrics to other programs of this process.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }
