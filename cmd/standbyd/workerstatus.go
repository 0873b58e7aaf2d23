package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
)

// workerDetail is a worker's row with its last deaths, oldest first.
type workerDetail struct {
	supervisor.WorkerStatus
	Role   string             `json:"role"`
	Deaths []supervisor.Death `json:"deaths"`
}

// workerStatus shows one worker.
func (a *app) workerStatus(ctx context.Context, client *api.Client, target string, f *form) error {
	known, err := client.Deaths(ctx, target)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(target, "/")
	one, err := client.StatusOf(ctx, name)
	if err != nil {
		return err
	}
	for _, w := range one.Roles[0].Workers {
		if w.Name != known.Worker {
			continue
		}
		if known.Damaged > 0 {
			fmt.Fprintf(a.stderr, "standbyd: damaged lines of the file with the deaths of %s that are left out: %d\n", known.Worker, known.Damaged)
		}
		if f.json() {
			return printJSON(a.stdout, workerDetail{w, name, known.Deaths})
		}
		var b bytes.Buffer
		workerBlock(&b, w, known.Deaths, time.Now(), painter(a.stdout))
		return writeErr(a.stdout.Write(b.Bytes()))
	}
	return fmt.Errorf("%w: %s", supervisor.ErrNoWorker, known.Worker)
}

func workerBlock(b *bytes.Buffer, w supervisor.WorkerStatus, deaths []supervisor.Death, now time.Time, p paint) {
	fmt.Fprintf(b, "%s  %s", p.as(bold, w.Name), p.as(workerColour(w.State), string(w.State)))
	if w.PID != 0 {
		fmt.Fprintf(b, "  pid %d", w.PID)
	}
	if w.StartedAt != nil {
		fmt.Fprintf(b, "  up %s", ago(*w.StartedAt, now))
	}
	fmt.Fprintf(b, "  restarts %d\n", w.Restarts)
	if w.Status != "" {
		fmt.Fprintf(b, "  it says: %s\n", oneLine(w.Status))
	}
	if w.Why != "" {
		fmt.Fprintf(b, "  %s\n", p.as(yellow, w.Why))
	}
	if h := w.Health; h != nil && h.Healthy {
		b.WriteString("  health: good\n")
	} else if h != nil {
		fmt.Fprintf(b, "  health: %s\n", p.as(red, fmt.Sprintf("%d probes in a row failed: %s", h.Failures, oneLine(h.Error))))
	}
	if len(deaths) == 0 {
		b.WriteString("  no deaths are known\n")
	}
	for _, d := range deaths {
		led, after := "", "after"
		if d.Leader {
			led = ", leading"
		}
		if d.Unseen {
			after = "after at most"
		}
		up := (time.Duration(d.UptimeMS) * time.Millisecond).Round(time.Millisecond)
		fmt.Fprintf(b, "  %s  pid %d, %s %s%s: %s\n", d.At.Local().Format(timeLayout), d.PID, after, up, led, oneLine(d.Cause))
		for _, line := range d.Lines {
			fmt.Fprintf(b, "      %s\n", p.as(faint, line))
		}
	}
}
