package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// segmentView is what `inspect -o json` prints.
type segmentView struct {
	File          string      `json:"file"`
	Generation    uint64      `json:"generation"`
	CreatedAt     time.Time   `json:"created_at"`
	TickNS        int64       `json:"tick_ns"`
	Grace         uint64      `json:"grace"`
	Fence         string      `json:"fence"`
	Proof         string      `json:"proof"`
	Scheduling    string      `json:"scheduling"`
	Preempt       string      `json:"preempt"`
	PayloadBytes  int         `json:"payload_bytes"`
	Epoch         uint64      `json:"epoch"`
	OwnerPID      uint32      `json:"owner_pid"`
	Term          uint64      `json:"term"`
	Token         role.Token  `json:"token"`
	ActivePID     uint32      `json:"active_pid"`
	ActiveTerm    uint64      `json:"active_term"`
	EpochsBehind  int64       `json:"epochs_behind"`
	Control       string      `json:"control"`
	Gate          bool        `json:"gate"`
	Members       []seatRow   `json:"members"`
	Terms         []termEntry `json:"terms"` // oldest first
	controlRemark string
	role          string // by the path; "" if it does not tell
}

type seatRow struct {
	Seat     int    `json:"seat"`
	Worker   int    `json:"worker"` // index, -1 for none
	PID      int    `json:"pid"`
	Process  string `json:"process"` // alive, exiting, gone
	Ready    bool   `json:"ready"`
	Beat     uint64 `json:"beat_epoch"`
	Priority int32  `json:"priority"`
}

// termEntry is one term of the ring; times are microseconds from the earliest
// evidence of the previous owner's end, null where not known.
type termEntry struct {
	Term        uint64      `json:"term"`
	Token       role.Token  `json:"token"`
	PID         uint32      `json:"pid"`
	PreviousPID uint32      `json:"previous_pid"`
	Reason      role.Reason `json:"reason"`
	DetectedUS  *float64    `json:"detected_us"`
	ClaimedUS   *float64    `json:"claimed_us"`
	FencedUS    *float64    `json:"fenced_us"`
	ActiveUS    *float64    `json:"active_us"`
}

func (a *app) inspectVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Print a role's segment and its last terms, also when everybody is dead",
		Long: `Print what stands in a segment: RUNTIME_DIR/roles/ROLE/segment.GENERATION. The
file is only read, and nobody needs to be running.

The segment knows how a claimant found the lease, and no more: a drill and a forced
failover show the reason "crash" or "hang", and a leader that was gone by then is
"-". What was meant, and by whom, is in 'standbyd history'.`,
		Args: exactArgs("FILE"),
	}
	f := addForm(c, "text", "json")
	return a.verb(c, func(_ context.Context, args []string) error {
		v, err := inspect(args[0])
		if err != nil {
			return err
		}
		if f.json() {
			return printJSON(a.stdout, v)
		}
		var b bytes.Buffer
		v.write(&b, painter(a.stdout))
		return writeErr(a.stdout.Write(b.Bytes()))
	})
}

func inspect(file string) (*segmentView, error) {
	seg, err := shm.OpenReadOnly(file)
	const where = "segments are RUNTIME_DIR/roles/ROLE/segment.GENERATION"
	if errors.Is(err, shm.ErrMagic) {
		return nil, fmt.Errorf("inspect %s: %w; %s", file, shm.ErrMagic, where)
	}
	if info, serr := os.Stat(file); err != nil && serr == nil && !info.Mode().IsRegular() {
		what := "no file with content"
		if info.IsDir() {
			what = "a folder"
		}
		return nil, fmt.Errorf("inspect %s: it is %s; %s", file, what, where)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("inspect %s: there is no such file; %s", file, where)
	}
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	defer seg.Close()
	e, p := election.Attach(seg), seg.Params()
	v := &segmentView{
		File: file, Generation: p.Generation, CreatedAt: seg.Meta().CreatedAt,
		TickNS: int64(p.Tick), Grace: p.Grace, PayloadBytes: p.Cell,
		Fence:      word(p.Fence, map[uint8]string{shm.FenceProcess: "process", shm.FenceTree: "tree", shm.FenceToken: "token"}),
		Scheduling: word(p.Scheduling, map[uint8]string{shm.SchedulingNormal: "normal", shm.SchedulingNice: "nice", shm.SchedulingFIFO: "fifo"}),
		Proof:      word(p.Proof, map[uint8]string{shm.ProofGone: "gone", shm.ProofExiting: "exiting"}),
		Preempt:    word(p.Preempt, map[uint8]string{shm.PreemptSticky: "sticky", shm.PreemptLowestPID: "lowest-pid", shm.PreemptPriority: "priority"}),
		Epoch:      e.Epoch(), EpochsBehind: e.Behind(),
		Members: []seatRow{}, Terms: []termEntry{}, role: roleOfSegment(file),
	}
	v.OwnerPID, v.Term = e.Owner()
	v.Token = e.TokenOf(v.Term)
	v.ActivePID, v.ActiveTerm = e.Active()
	control := e.Control()
	v.Control, v.Gate = control.State.String(), control.Gate
	if control.Until != 0 {
		if left := time.Duration(control.Until - proc.MonoNow()); left > 0 {
			v.controlRemark = " for another " + span(left)
		} else {
			v.controlRemark = " (lapsed)"
		}
	}
	for _, m := range heartbeat.NewTable(seg).Members() {
		v.Members = append(v.Members, seatRow{
			Seat: m.Seat, Worker: m.Index, PID: m.Identity.PID, Process: proc.Judge(m.Identity).String(),
			Ready: m.Ready, Beat: m.BeatEpoch, Priority: m.Candidate.Priority,
		})
	}
	ended := int64(0)
	for _, r := range e.Ring() {
		since := func(at int64) *float64 {
			if at == 0 || ended == 0 || at < ended {
				return nil
			}
			us := float64(at-ended) / 1e3
			return &us
		}
		v.Terms = append(v.Terms, termEntry{
			Term: r.Term, Token: e.TokenOf(r.Term), PID: r.PID, PreviousPID: r.PreviousPID, Reason: r.Reason,
			DetectedUS: since(r.DetectedAt), ClaimedUS: since(r.ClaimedAt), FencedUS: since(r.FencedAt), ActiveUS: since(r.ActiveAt),
		})
		ended = r.EndedAt
	}
	return v, nil
}

// roleOfSegment is ROLE of a path .../roles/ROLE/segment.N, "" of another one.
func roleOfSegment(file string) string {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return ""
	}
	dir := filepath.Dir(absolute)
	if filepath.Base(filepath.Dir(dir)) != "roles" || !strings.HasPrefix(filepath.Base(absolute), "segment.") {
		return ""
	}
	return filepath.Base(dir)
}

// word names a code; an unknown one shows its number.
func word(code uint8, names map[uint8]string) string {
	if s, ok := names[code]; ok {
		return s
	}
	return fmt.Sprintf("unknown (%d)", code)
}

func (v *segmentView) write(b *bytes.Buffer, p paint) {
	fmt.Fprintf(b, "%s\n", p.as(bold, v.File))
	fmt.Fprintf(b, "  generation %d, created %s\n", v.Generation, v.CreatedAt.Local().Format(timeLayout))
	fmt.Fprintf(b, "  tick %s, grace %d, fence %s, proof %s, preempt %s, payload %d bytes\n",
		time.Duration(v.TickNS), v.Grace, v.Fence, v.Proof, v.Preempt, v.PayloadBytes)
	owner, active := "nobody", "nobody"
	if v.OwnerPID != 0 {
		owner = fmt.Sprintf("pid %d, %d epochs behind", v.OwnerPID, v.EpochsBehind)
	}
	if v.ActivePID != 0 {
		active = fmt.Sprintf("pid %d in term %d", v.ActivePID, v.ActiveTerm)
	}
	fmt.Fprintf(b, "  epoch %d, term %d, token %s\n  owner %s; active %s\n  control %s%s", v.Epoch, v.Term, v.Token, owner, active, v.Control, v.controlRemark)
	if v.Gate {
		b.WriteString(", gate")
	}
	b.WriteString("\n")
	seats := table{head: []string{"SEAT", "WORKER", "PID", "PROCESS", "READY", "BEAT", "PRIORITY"}}
	for _, m := range v.Members {
		who, ready := "-", "no"
		switch {
		case m.Seat == heartbeat.SupervisorSeat:
			who, ready = "standbyd", "-"
		case m.Worker >= 0:
			who = fmt.Sprint(m.Worker)
			if v.role != "" {
				who = fmt.Sprintf("%s-%d", v.role, m.Worker)
			}
		}
		if m.Ready {
			ready = "yes"
		}
		seats.add(cell{fmt.Sprint(m.Seat), ""}, cell{who, ""}, cell{number(m.PID), ""}, cell{m.Process, ""}, cell{ready, ""},
			cell{fmt.Sprint(m.Beat), ""}, cell{fmt.Sprint(m.Priority), ""})
	}
	seats.write(b, p)
	terms := table{head: []string{"TERM", "TOKEN", "REASON", "FROM", "TO", "DETECTED", "CLAIMED", "FENCED", "ACTIVE"}}
	for _, t := range v.Terms {
		terms.add(cell{fmt.Sprint(t.Term), ""}, cell{t.Token.String(), ""}, cell{string(t.Reason), ""}, cell{number(int(t.PreviousPID)), ""},
			cell{number(int(t.PID)), ""}, cell{phase(t.DetectedUS), ""}, cell{phase(t.ClaimedUS), ""}, cell{phase(t.FencedUS), ""}, cell{phase(t.ActiveUS), ""})
	}
	terms.write(b, p)
}
