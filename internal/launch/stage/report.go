//go:build unix

package stage

import (
	"errors"
	"syscall"
)

// Failure is why a stage could not start the program.
type Failure struct {
	Err    syscall.Errno // 0 if the system has no number for it
	Step   string        // see launch.Error
	On     string        // what the step was attempted on; may be empty
	Advice string        // what is behind the error; may be empty
}

// encode is the report of a failure.
func (f *Failure) encode() []byte {
	b := appendNumber(nil, uint64(f.Err))
	for _, s := range []string{f.Step, f.On, f.Advice} {
		b = appendString(b, s)
	}
	return b
}

// ErrReport: a report that no stage wrote, or not to its end.
var ErrReport = errors.New("the stage's report is damaged")

// DecodeFailure reads a report, without the go byte that may precede it.
func DecodeFailure(b []byte) (*Failure, error) {
	d := decoder{b: b}
	f := &Failure{Err: syscall.Errno(d.number()), Step: d.string(), On: d.string(), Advice: d.string()}
	if d.bad || len(d.b) != 0 {
		return nil, ErrReport
	}
	return f, nil
}
