//go:build darwin || freebsd

package main

import "golang.org/x/sys/unix"

func isTTY(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TIOCGETA)
	return err == nil
}
