package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeTerminal makes this process the foreground group of its terminal, as a
// shell does for a job, and returns how to give it back. Then Ctrl-C reaches
// the daemon alone: a make that started it sees it end with 0 instead of being
// interrupted itself. Without a terminal, in the background, or when a shell
// has done it already, nothing happens.
func takeTerminal(stdin any) (giveBack func(), err error) {
	giveBack = func() {}
	if !isTerminal(stdin) {
		return giveBack, nil
	}
	fd := int(stdin.(*os.File).Fd())
	group := unix.Getpgrp()
	front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || front != group || group == os.Getpid() {
		return giveBack, nil
	}
	// A background group that touches its terminal is stopped by SIGTTOU.
	// Ignored only for this moment: workers would inherit it.
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	if err := unix.Setpgid(0, 0); err != nil {
		return giveBack, fmt.Errorf("take the terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, os.Getpid()); err != nil {
		return giveBack, fmt.Errorf("take the terminal: %w", err)
	}
	// Nobody would continue us after a Ctrl-Z: the shell sees only its job.
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTSTP)
	return func() {
		signal.Ignore(syscall.SIGTTOU)
		unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, group)
		signal.Stop(stops)
	}, nil
}
