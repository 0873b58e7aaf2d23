package supervisor

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const signalContinue = syscall.SIGCONT

// signalByName reads "TERM" or "SIGTERM". 0: there is none of that name.
func signalByName(name string) syscall.Signal {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	return unix.SignalNum(name)
}

func (p *policy) stopSignal() syscall.Signal { return signalByName(p.StopSignal) }
