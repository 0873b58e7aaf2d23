//go:build unix

package launch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/standbyd/standbyd/internal/launch/stage"
	"github.com/standbyd/standbyd/internal/proc"
)

// gate is the parent's end of a process that waits.
type gate struct {
	order  []byte
	open   *os.File // write: the order; its end without one ends the stage
	report *os.File // read: nothing but the go byte, or a failure
}

func (g *gate) close() {
	g.open.Close()
	g.report.Close()
}

func startStaged(spec Spec, files descriptors) (*Process, error) {
	if !CanStage() {
		return nil, &Error{Path: spec.Path, Step: "stage", Err: errors.New("this program's main does not call Stage first")}
	}
	stageGate, open, err := pipe(true)
	if err != nil {
		return nil, &Error{Path: spec.Path, Step: "stage", Err: err}
	}
	defer syscall.Close(stageGate)
	stageReport, report, err := pipe(false)
	if err != nil {
		open.Close()
		return nil, &Error{Path: spec.Path, Step: "stage", Err: err}
	}
	defer syscall.Close(stageReport)
	order := stage.Order{
		Path: spec.Path, Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Umask: spec.Umask,
		Credential: spec.Credential, ListenPID: len(spec.Listeners) > 0,
	}
	spec.Settings.order(&order)
	g := &gate{open: open, report: report, order: order.Frame()}

	self, err := ownProgram()
	if err != nil {
		g.close()
		return nil, &Error{Path: spec.Path, Step: "stage", Err: err}
	}
	pid, step, err := forkInto(spec.Cgroup, self, stage.Argv(len(files.list)), &syscall.ProcAttr{
		Env:   stage.Env(),
		Files: append(slices.Clip(files.list), uintptr(stageGate), uintptr(stageReport)),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if step != "" {
		g.close()
		return nil, &Error{Path: spec.Path, Step: step, On: spec.Cgroup, Err: err}
	}
	if err != nil {
		g.close()
		return nil, &Error{Path: spec.Path, Step: "stage", On: self, Err: err}
	}
	p, err := watchChild(spec.Path, pid)
	if err != nil {
		g.close()
		return nil, err
	}
	p.gate = g
	return p, nil
}

// Release opens the gate and returns when the program runs, or why it does
// not: an *Error that names the step. After an error the process ends by
// itself with status 127; wait for Done and Reap as after any other end.
// ErrNotStaged if it does not wait.
func (p *Process) Release() error {
	p.mu.Lock()
	g := p.gate
	p.gate = nil
	p.mu.Unlock()
	if g == nil {
		return &Error{Path: p.path, Step: "stage", Err: ErrNotStaged}
	}
	defer g.close()
	if _, err := g.open.Write(append(g.order, stage.GoByte)); err != nil && !errors.Is(err, syscall.EPIPE) {
		return &Error{Path: p.path, Step: "stage", Err: err}
	}
	g.open.Close()
	text, err := io.ReadAll(g.report)
	switch {
	case err != nil:
		return &Error{Path: p.path, Step: "stage", Err: err}
	case len(text) == 1 && text[0] == stage.GoByte:
		return nil
	case len(text) == 0:
		return &Error{Path: p.path, Step: "stage", Err: proc.ErrGone, Advice: "something ended the process before the program ran"}
	}
	f, err := stage.DecodeFailure(bytes.TrimPrefix(text, []byte{stage.GoByte}))
	if err != nil {
		return &Error{Path: p.path, Step: "stage", Err: err}
	}
	return &Error{Path: p.path, Step: f.Step, On: f.On, Err: f.Err, Advice: f.Advice}
}
