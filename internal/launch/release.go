//go:build unix

package launch

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

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
	g := &gate{open: open, report: report, order: (&order{
		Path: spec.Path, Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Umask: spec.Umask,
		Credential: spec.Credential, ListenPID: len(spec.Listeners) > 0, Settings: spec.Settings,
	}).encode()}

	self, err := ownProgram()
	if err != nil {
		g.close()
		return nil, &Error{Path: spec.Path, Step: "stage", Err: err}
	}
	number := len(files.list)
	pid, step, err := forkInto(spec.Cgroup, self, []string{stageName, strconv.Itoa(number)}, &syscall.ProcAttr{
		// The stage's own runtime is kept small; the program's environment
		// comes with the order.
		Env:   []string{"GOMAXPROCS=1", "GOGC=off"},
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
	if _, err := g.open.Write(append(g.order, goByte)); err != nil && !errors.Is(err, syscall.EPIPE) {
		return &Error{Path: p.path, Step: "stage", Err: err}
	}
	g.open.Close()
	text, err := io.ReadAll(g.report)
	switch {
	case err != nil:
		return &Error{Path: p.path, Step: "stage", Err: err}
	case len(text) == 1 && text[0] == goByte:
		return nil
	case len(text) == 0:
		return &Error{Path: p.path, Step: "stage", Err: proc.ErrGone, Advice: "something ended the process before the program ran"}
	}
	e := decodeFailure(strings.TrimPrefix(string(text), string(rune(goByte))))
	e.Path = p.path
	return e
}

// encodeFailure: error number, then step, object and advice, separated by zeros.
func encodeFailure(step, on string, err error, advice string) []byte {
	var number syscall.Errno
	errors.As(err, &number)
	return append(binary.BigEndian.AppendUint32(nil, uint32(number)), step+"\x00"+on+"\x00"+advice...)
}

func decodeFailure(text string) *Error {
	if len(text) >= 4 {
		parts := strings.SplitN(text[4:], "\x00", 3)
		if len(parts) == 3 {
			return &Error{Step: parts[0], On: parts[1], Advice: parts[2],
				Err: syscall.Errno(binary.BigEndian.Uint32([]byte(text[:4])))}
		}
	}
	return &Error{Step: "stage", Err: errors.New("the stage's report is damaged")}
}
