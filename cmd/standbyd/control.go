package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/internal/config"
	"github.com/standbyd/standbyd/internal/metrics"
	"github.com/standbyd/standbyd/supervisor"
)

// control opens the control socket when the supervisor has begun, and serves
// it until the supervisor has stopped.
func (a *app) control(events <-chan supervisor.Event, sup *supervisor.Supervisor, c *config.Config, file string, log hclog.Logger, stop func(), stopped <-chan struct{}, shown *metrics.Metrics, again *reloader) error {
	if !begun(events, stopped) {
		<-stopped
		return nil
	}
	path := a.socket
	if path == "" {
		path = filepath.Join(c.Daemon.RuntimeDir, api.SocketName)
	}
	access := api.Access{Group: c.Daemon.ControlGroup, GID: c.Daemon.ControlGID, Full: c.Daemon.ControlAccess == "full"}
	l, err := api.Listen(path, access)
	if err != nil {
		return err
	}
	server := api.NewServer(sup, stop, stopped)
	server.Warn = func(line string) { log.Warn(line) }
	server.Table = func(w io.Writer, s supervisor.Snapshot, colour bool) error {
		return statusTable(w, s, time.Now(), paint{colour})
	}
	server.Access, server.Metrics, server.Reloader = access, shown.Handler(), again
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-stopped
		cancel()
	}()
	if c.Daemon.MetricsAddress != "" {
		go serveProbes(ctx, c.Daemon.MetricsAddress, server.Probes(), log)
	}
	a.greet(listening(sup), c, file)
	close(a.greeted)
	return server.Serve(ctx, l)
}

// metricsOf counts a supervisor's events until ctx ends.
func metricsOf(ctx context.Context, sup *supervisor.Supervisor) *metrics.Metrics {
	m := metrics.New(sup, version)
	go m.Follow(ctx)
	return m
}

// rebindEvery is how often an address that is taken is tried again.
const rebindEvery = 2 * time.Second

// serveProbes answers probes and metrics over TCP until ctx ends. An address
// that is taken is no reason to stop roles: it is said, and tried again.
func serveProbes(ctx context.Context, address string, h http.Handler, log hclog.Logger) {
	said := ""
	for {
		l, err := net.Listen("tcp", address)
		if err == nil {
			log.Info("metrics and probes: http://" + l.Addr().String() + "/metrics")
			s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
			end := context.AfterFunc(ctx, func() { s.Close() })
			err = s.Serve(l)
			end()
		}
		if ctx.Err() != nil {
			return
		}
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		if line := fmt.Sprintf("supervisor.metrics_address %s: %v; it is tried again until it is free", address, err); line != said {
			log.Error(line)
			said = line
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rebindEvery):
		}
	}
}
