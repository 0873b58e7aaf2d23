//go:build !linux

package main

import "syscall"

// There is no parent-death signal that is used here: the warden alone ends the
// command.
func killWithThread(*syscall.SysProcAttr) {}

func dieWithParent() {}
