package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/supervisor"
)

// How things are told in one line, the same in the log, in `events`, in
// `history` and after a drill.

const timeLayout = "2006-01-02 15:04:05"

// whom is "kv-0 (pid 41)".
func whom(worker string, pid int) string {
	switch {
	case worker == "" && pid == 0:
		return "nobody"
	case worker == "":
		return fmt.Sprintf("pid %d", pid)
	case pid == 0:
		return worker
	}
	return fmt.Sprintf("%s (pid %d)", worker, pid)
}

// phase writes a measured time; "-" if it was not measured.
func phase(us *float64) string {
	if us == nil {
		return "-"
	}
	switch v := *us; {
	case v <= 0:
		return fmt.Sprintf("%.0fus", v)
	case v < 10:
		return fmt.Sprintf("%.1fus", v)
	case v < 1000:
		return fmt.Sprintf("%.0fus", v)
	case v < 1e6:
		return fmt.Sprintf("%.1fms", v/1e3)
	default:
		return fmt.Sprintf("%.2fs", v/1e6)
	}
}

// phases is "detected 180us claimed 184us fenced 190us active 260us hooks
// 3.1ms". What was not measured is left out.
func phases(r supervisor.Record) string {
	var parts []string
	for _, p := range []struct {
		name string
		us   *float64
	}{{"returned", r.ReturnedUS}, {"ended", r.EndedUS}, {"detected", r.DetectedUS}, {"claimed", r.ClaimedUS}, {"fenced", r.FencedUS},
		{"active", r.ActiveUS}, {"hooks", r.HooksUS}} {
		if p.us != nil && (*p.us != 0 || p.name != "ended" && p.name != "returned") { // 0: it is where the count begins
			parts = append(parts, p.name+" "+phase(p.us))
		}
	}
	return strings.Join(parts, " ")
}

// why is the reason, and of a drill its fault: "crash", "drill stop".
func why(r supervisor.Record) string {
	if r.Fault == "" {
		return string(r.Reason)
	}
	return string(r.Reason) + " " + string(r.Fault)
}

// story is one change of leader in one line.
func story(r supervisor.Record) string {
	s := fmt.Sprintf("%s  %s  %s  %s -> %s  token %s", r.At.Local().Format(timeLayout), r.Role, why(r),
		whom(r.From, r.FromPID), whom(r.To, r.ToPID), r.Token)
	if p := phases(r); p != "" {
		s += "  " + p
	}
	if r.Cause != "" {
		s += "  (" + oneLine(r.Cause) + ")"
	}
	return s
}

// lastFailover is the same in words, for the status.
func lastFailover(r supervisor.Record, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ago: ", ago(r.At, now))
	who := whom(r.From, r.FromPID)
	switch r.Reason {
	case role.ReasonCrash:
		fmt.Fprintf(&b, "%s died", who)
	case role.ReasonHang:
		if r.Cause != "" {
			fmt.Fprintf(&b, "%s was ended: %s", who, oneLine(r.Cause))
			break
		}
		fmt.Fprintf(&b, "%s hung", who)
	case role.ReasonDrill:
		fmt.Fprintf(&b, "%s on %s", why(r), who)
	case role.ReasonStepDown:
		fmt.Fprintf(&b, "%s stepped down", who)
	case role.ReasonPreempt:
		fmt.Fprintf(&b, "%s was preempted", who)
	case role.ReasonSwitchover:
		fmt.Fprintf(&b, "switchover, %s handed over", who)
	case role.ReasonForced:
		fmt.Fprintf(&b, "forced failover from %s", who)
	case role.ReasonStopped:
		fmt.Fprintf(&b, "%s was stopped", who)
	case role.ReasonFirst:
		b.WriteString("first leader")
	default:
		fmt.Fprintf(&b, "%s of %s", r.Reason, who)
	}
	fmt.Fprintf(&b, ", %s took over", whom(r.To, r.ToPID))
	var steps []string
	for _, p := range []struct {
		words string
		us    *float64
	}{{"detected after", r.DetectedUS}, {"claimed after", r.ClaimedUS}, {"leading after", r.ActiveUS}, {"plugins done after", r.HooksUS}} {
		if p.us != nil {
			steps = append(steps, p.words+" "+phase(p.us))
		}
	}
	if len(steps) > 0 {
		b.WriteString("; " + strings.Join(steps, ", "))
	}
	return b.String()
}

// ago writes how long something is past, coarsely.
func ago(t, now time.Time) string { return span(now.Sub(t)) }

func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// ending says how a process ended.
func ending(e *supervisor.Exit) string {
	switch {
	case e == nil:
		return ""
	case e.Error != "":
		return "not started: " + e.Error
	case e.Cause != "":
		return "ended: " + oneLine(e.Cause)
	case e.Signal != "":
		return "killed by " + strings.TrimPrefix(e.Signal, "SIG")
	case e.Code == nil:
		return "ended, nobody saw how"
	case *e.Code == 0:
		return "exit 0"
	case *e.Code == 75:
		return "exit 75 (fenced, or too slow to drain)"
	case *e.Code == 70:
		return "exit 70 (a drill told it to)"
	default:
		return fmt.Sprintf("exit %d", *e.Code)
	}
}

// about names what an event is about: a worker, a plugin or the role itself.
func about(e supervisor.Event) string {
	switch {
	case e.Plugin != "":
		return "plugin " + e.Plugin
	case e.Worker != "":
		return whom(e.Worker, e.PID)
	case e.PID != 0:
		return fmt.Sprintf("pid %d", e.PID)
	}
	return ""
}

// sentence tells an event without its time and role.
func sentence(e supervisor.Event) string {
	who := about(e)
	var s string
	switch e.Type {
	case supervisor.EventSupervisorStarted:
		s = fmt.Sprintf("standbyd started (pid %d)", e.PID)
	case supervisor.EventSupervisorStopped:
		s = "standbyd stopped"
	case supervisor.EventRoleState:
		return join(e.Text, e.Error)
	case supervisor.EventWorkerStarted:
		s = who + " started"
	case supervisor.EventWorkerReady:
		s = who + " is ready"
	case supervisor.EventWorkerExited:
		s = who + " ended: " + cmp.Or(ending(e.Exit), "nobody saw how")
	case supervisor.EventWorkerBackoff:
		s = who + " will be restarted"
	case supervisor.EventWorkerFailed:
		s = who + " has failed"
	case supervisor.EventWorkerAdopted:
		s = who + " was found running and is adopted"
	case supervisor.EventLeaderLost:
		s = fmt.Sprintf("%s leads no more, token %s", who, e.Token)
	case supervisor.EventLeaderActive:
		s = fmt.Sprintf("%s leads, token %s", who, e.Token)
	case supervisor.EventFailover:
		if e.Record == nil {
			return join("failover", e.Text)
		}
		s = fmt.Sprintf("%s: %s -> %s, token %s", why(*e.Record), whom(e.Record.From, e.Record.FromPID), whom(e.Record.To, e.Record.ToPID), e.Record.Token)
		if p := phases(*e.Record); p != "" {
			s += "; " + p
		}
		if e.Record.Cause != "" {
			s += "; " + oneLine(e.Record.Cause)
		}
	case supervisor.EventChange, supervisor.EventPaused, supervisor.EventResumed:
		return join(string(e.Type), e.Text)
	case supervisor.EventHook:
		s = who + ": " + e.Text
		if e.Token != 0 {
			s += ", token " + e.Token.String()
		}
		if e.Error == "" {
			return s + " done"
		}
		return s + " failed: " + e.Error
	case supervisor.EventPlugin:
		s = who
		if e.Text == "" && e.Error == "" {
			s += " has another state; see status"
		}
	default:
		s = who
		if s == "" {
			return join(e.Text, e.Error)
		}
	}
	if e.Reason != "" && e.Type != supervisor.EventFailover {
		s += " (" + string(e.Reason) + ")"
	}
	if e.Type == supervisor.EventSupervisorStarted {
		return s
	}
	return join(s, join(e.Text, e.Error))
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}
