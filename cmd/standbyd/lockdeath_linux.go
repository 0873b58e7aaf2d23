//go:build linux

package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// killWithThread: the child is killed when the thread that starts it ends.
func killWithThread(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// dieWithParent is the same, asked for by the child: the signal is lost when
// another thread than the first one executes a program.
func dieWithParent() { unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0) }
