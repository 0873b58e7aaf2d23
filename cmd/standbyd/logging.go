package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/standbyd/standbyd/internal/config"
	"github.com/standbyd/standbyd/supervisor"
)

// reportEvery is how often a stop that takes its time says what it waits for.
const reportEvery = 2 * time.Second

// greetWithin is how long the log waits for the greeting.
const greetWithin = time.Second

// newLogger makes the daemon's one logger.
func newLogger(d config.Daemon, w io.Writer, p paint) hclog.Logger {
	o := &hclog.LoggerOptions{
		Output: w, Level: hclog.LevelFromString(d.LogLevel), JSONFormat: d.LogFormat == "json",
		TimeFormat: "2006-01-02T15:04:05.000Z07:00",
	}
	if p.on {
		o.Color, o.ColorHeaderOnly = hclog.ForceColor, true
	}
	return hclog.New(o)
}

// tell logs the supervisor's events until its last one.
func (a *app) tell(events <-chan supervisor.Event, sup *supervisor.Supervisor, log hclog.Logger, stopping, stopped <-chan struct{}) {
	select { // the greeting comes first, if it comes soon
	case <-a.greeted:
	case <-stopped:
	case <-time.After(greetWithin):
	}
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	over := false
	for {
		if over && len(events) == 0 {
			return
		}
		select {
		case e := <-events:
			logEvent(log, e)
		case <-stopped:
			over, stopped = true, nil
		case <-report.C:
			select {
			case <-stopping:
				if rest := remaining(sup.Snapshot()); rest != "" {
					log.Info("still stopping: " + rest)
				}
			default:
			}
		}
	}
}

// remaining names the processes that a stop waits for.
func remaining(s supervisor.Snapshot) string {
	var parts []string
	for _, r := range s.Roles {
		for _, w := range r.Workers {
			if w.PID != 0 {
				parts = append(parts, join(fmt.Sprintf("%s is %s", whom(w.Name, w.PID), w.State), w.Why))
			}
		}
		for _, p := range r.Plugins {
			if p.PID != 0 {
				parts = append(parts, fmt.Sprintf("plugin %s (pid %d) is %s", p.Name, p.PID, p.State))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// logEvent writes one event as one line.
func logEvent(log hclog.Logger, e supervisor.Event) {
	if e.Dropped > 0 {
		log.Warn("events were lost here: the log was too slow", "count", e.Dropped)
	}
	if e.Role != "" {
		log = log.Named(e.Role)
	}
	log.Log(levelOf(e), sentence(e))
}

func levelOf(e supervisor.Event) hclog.Level {
	switch e.Type {
	case supervisor.EventWarning, supervisor.EventWorkerBackoff:
		return hclog.Warn
	case supervisor.EventWorkerFailed:
		return hclog.Error
	case supervisor.EventHook, supervisor.EventPlugin:
		if e.Error == "" {
			return hclog.Debug
		}
		return hclog.Warn
	}
	if e.Error != "" {
		return hclog.Warn
	}
	return hclog.Info
}
