//go:build unix

package stage

import (
	"os"
	"strconv"
	"syscall"
)

// name is argv[0] of a stage: what ps shows until the program runs.
const name = "standbyd-stage"

// FailedStatus is the exit status of a stage that could not start the program,
// like that of a shell.
const FailedStatus = 127

// firstGate is the lowest number that a gate can have: it comes after what the
// program gets.
const firstGate = 3

// Argv makes a process of this program a stage that finds its gate at the
// descriptor gate, and the one for its report after it.
func Argv(gate int) []string { return []string{name, strconv.Itoa(gate)} }

// Env is the environment of a stage: its own runtime is kept small. The
// program's comes with the order.
func Env() []string { return []string{"GOMAXPROCS=1", "GOGC=off"} }

func init() {
	if len(os.Args) == 2 && os.Args[0] == name {
		if gate, err := strconv.Atoi(os.Args[1]); err == nil && gate >= firstGate {
			os.Exit(run(gate))
		}
	}
}

// run returns only if the program does not run. The goroutine of an init is on
// the main thread and stays there: niceness and no_new_privs are a thread's own.
func run(gate int) (status int) {
	report := gate + 1
	closeOthersOnExec(gate)
	o, err := readOrder(gate)
	if err != nil {
		return 0 // the parent is gone, or gave up: nobody is interested
	}
	pid := strconv.Itoa(os.Getpid())
	env := append(o.Env, "STANDBYD_PID="+pid)
	if o.ListenPID {
		env = append(env, "LISTEN_PID="+pid)
	}
	f := o.prepare()
	if f == nil {
		f = &Failure{Step: "exec"}
		// The byte tells a death before exec from success, which is the
		// end of the pipe too.
		if _, err = syscall.Write(report, []byte{GoByte}); err == nil {
			err = syscall.Exec(o.Path, o.Args, env)
		}
		f.Err, _ = err.(syscall.Errno)
		f.Advice = AdviseExec(o.Path, err)
	}
	syscall.Write(report, f.encode())
	return FailedStatus
}

// readOrder waits at the gate. Without the go byte there is no order.
func readOrder(gate int) (*Order, error) {
	head := make([]byte, lengthSize)
	if err := readFull(gate, head); err != nil {
		return nil, err
	}
	n := (&decoder{b: head}).number()
	if n > 1<<28 {
		return nil, errOrder
	}
	body := make([]byte, n+1)
	if err := readFull(gate, body); err != nil {
		return nil, err
	}
	if body[n] != GoByte {
		return nil, errOrder
	}
	return decodeOrder(body[:n])
}

func readFull(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Read(fd, b)
		switch {
		case err == syscall.EINTR || err == syscall.EAGAIN:
			continue
		case err != nil:
			return err
		case n == 0:
			return errOrder
		}
		b = b[n:]
	}
	return nil
}
