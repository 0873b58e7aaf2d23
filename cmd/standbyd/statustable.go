package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/standbyd/standbyd/internal/wording"
	"github.com/standbyd/standbyd/supervisor"
)

// statusTable writes a snapshot for people: one block per role.
func statusTable(w io.Writer, s supervisor.Snapshot, now time.Time, p paint) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "standbyd %s  pid %d  up %s", s.Supervisor.Version, s.Supervisor.PID, ago(s.Supervisor.StartedAt, now))
	if s.Supervisor.ConfigFile != "" {
		fmt.Fprintf(&b, "  %s", s.Supervisor.ConfigFile)
	}
	b.WriteByte('\n')
	for _, text := range s.Supervisor.Warnings {
		fmt.Fprintf(&b, "  %s\n", p.as(yellow, oneLine(text)))
	}
	for i := range s.Roles {
		b.WriteByte('\n')
		roleBlock(&b, &s.Roles[i], now, p)
	}
	return writeErr(w.Write(b.Bytes()))
}

func roleBlock(b *bytes.Buffer, r *supervisor.RoleStatus, now time.Time, p paint) {
	head := []string{p.as(bold, r.Name), p.as(roleColour(r.State), string(r.State))}
	if r.Leader != "" {
		head[1] += " by " + p.as(bold, whom(r.Leader, r.LeaderPID))
	}
	if r.Token != 0 {
		head = append(head, "token "+r.Token.String())
	}
	for _, l := range r.Listen {
		where := l.Address
		if l.Network == "udp" {
			where = "udp " + where
		}
		head = append(head, l.Name+" on "+where)
	}
	switch {
	case r.Pause != nil && r.State == supervisor.RolePaused:
		head[1] = p.as(yellow, pauseWords(r.Pause, now))
	case r.Pause != nil:
		head[1] += ", " + p.as(yellow, pauseWords(r.Pause, now))
	}
	b.WriteString(strings.Join(head, "  ") + "\n")
	if r.Why != "" {
		fmt.Fprintf(b, "  %s\n", p.as(yellow, short(r.Why, shortWhy)))
	}
	if r.UnderWay != "" {
		fmt.Fprintf(b, "  %s\n", p.as(yellow, short(r.UnderWay, shortWhy)))
	}
	if r.ReloadFailed != "" {
		fmt.Fprintf(b, "  %s\n", p.as(yellow, short(r.ReloadFailed, shortWhy)))
	}

	workers := table{head: []string{"WORKER", "STATE", "PID", "READY", "UP", "RESTARTS", "LAST EXIT"}}
	for _, wk := range r.Workers {
		up, ready := "-", "no"
		if wk.StartedAt != nil && wk.PID != 0 {
			up = ago(*wk.StartedAt, now)
		}
		if wk.Ready {
			ready = "yes"
		}
		last := "-"
		if wk.LastExit != nil {
			last = short(ending(wk.LastExit), shortText/2)
			if !wk.LastExit.At.IsZero() {
				last += fmt.Sprintf(", %s ago", ago(wk.LastExit.At, now))
			}
		}
		workers.add(cell{wk.Name, ""}, cell{string(wk.State), workerColour(wk.State)}, cell{number(wk.PID), ""}, cell{ready, ""},
			cell{up, ""}, cell{fmt.Sprint(wk.Restarts), ""}, cell{last, ""})
		if wk.Why != "" {
			workers.note("  " + p.as(yellow, short(wk.Why, shortText)))
		}
	}
	workers.write(b, p)

	if len(r.Plugins) > 0 {
		plugins := table{head: []string{"PLUGIN", "STATE", "PID", "TOKEN", "LAST ERROR"}}
		for _, pl := range r.Plugins {
			token := "-"
			if pl.Token != 0 {
				token = pl.Token.String()
			}
			plugins.add(cell{pl.Name, ""}, cell{pl.State, pluginColour(pl.State)}, cell{number(pl.PID), ""}, cell{token, ""},
				cell{cmp.Or(short(hookTrouble(pl), shortText), "-"), ""})
		}
		plugins.write(b, p)
	}

	if r.LastFailover != nil {
		fmt.Fprintf(b, "  %s %s\n", p.as(faint, "last failover"), lastFailover(*r.LastFailover, now))
	}
	fmt.Fprintf(b, "  %s %s\n", p.as(faint, "protection   "), protection(r.Protection))
	if n := r.Budget.Spent; n > 0 {
		fmt.Fprintf(b, "  %s %d of %d failovers within %s are spent\n", p.as(faint, "budget       "), n, r.Budget.Failovers, r.Budget.Per)
	}
	if r.DroppedLines > 0 {
		fmt.Fprintf(b, "  %s\n", p.as(yellow, fmt.Sprintf("%d lines of output were dropped: the disk was full or too slow", r.DroppedLines)))
	}
}

// pauseWords is "paused for another 9m58s".
func pauseWords(s *supervisor.PauseStatus, now time.Time) string {
	if s.Until == nil {
		return "paused"
	}
	return "paused for another " + span(s.Until.Sub(now))
}

// hookTrouble is a plugin's last error, and how often it hung.
func hookTrouble(p supervisor.PluginStatus) string {
	text := oneLine(p.LastError)
	if p.Hangs == 0 || strings.Contains(text, "hung ") {
		return text
	}
	return join("hung "+wording.Count(p.Hangs, "time"), text)
}

func protection(g supervisor.Protection) string {
	parts := []string{}
	if len(g.Detect) > 0 {
		parts = append(parts, "death seen by "+strings.Join(g.Detect, ", "))
	}
	parts = append(parts, "proof "+string(g.Proof), "fence "+string(g.Fence))
	if g.Gate {
		parts = append(parts, "plugins may veto")
	}
	s := strings.Join(parts, "; ")
	if len(g.Missing) > 0 {
		s += "; missing here: " + wording.Few(g.Missing)
	}
	return s
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// oneLine keeps a message from breaking the table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func roleColour(s supervisor.RoleState) string {
	switch s {
	case supervisor.RoleLed:
		return green
	case supervisor.RoleVacant, supervisor.RoleHeld:
		return red
	}
	return yellow
}

func workerColour(s supervisor.WorkerState) string {
	switch s {
	case supervisor.WorkerLeader, supervisor.WorkerStandby:
		return green
	case supervisor.WorkerFailed:
		return red
	case supervisor.WorkerStopped:
		return faint
	}
	return yellow
}

func pluginColour(state string) string {
	switch state {
	case "leading", "running":
		return green
	case "failed":
		return red
	}
	return yellow
}

// table aligns columns by what is seen, not by the bytes of colours.
type table struct {
	head  []string
	rows  [][]cell
	notes map[int]string // below the row
}

type cell struct{ text, colour string }

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

func (t *table) note(s string) {
	if t.notes == nil {
		t.notes = map[int]string{}
	}
	t.notes[len(t.rows)-1] = s
}

func (t *table) write(b *bytes.Buffer, p paint) {
	width := make([]int, len(t.head))
	for i, h := range t.head {
		width[i] = utf8.RuneCountInString(h)
		for _, row := range t.rows {
			width[i] = max(width[i], utf8.RuneCountInString(row[i].text))
		}
	}
	line := func(cells []cell) {
		b.WriteString("  ")
		for i, c := range cells {
			b.WriteString(p.as(c.colour, c.text))
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text)+2))
			}
		}
		b.WriteByte('\n')
	}
	head := make([]cell, len(t.head))
	for i, h := range t.head {
		head[i] = cell{h, faint}
	}
	line(head)
	for i, row := range t.rows {
		line(row)
		if note, ok := t.notes[i]; ok {
			b.WriteString("  " + note + "\n")
		}
	}
}
