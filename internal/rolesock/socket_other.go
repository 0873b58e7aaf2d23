//go:build unix && !linux

package rolesock

import "golang.org/x/sys/unix"

var oobSize = unix.CmsgSpace(MaxFiles * 4)

// prepare has nothing to do where a socket's mode is not that of its path.
func prepare(int) {}

func readCredentials(*unix.SocketControlMessage, *Message) {}
