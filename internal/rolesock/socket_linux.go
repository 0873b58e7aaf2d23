//go:build linux

package rolesock

import "golang.org/x/sys/unix"

var oobSize = unix.CmsgSpace(MaxFiles*4) + unix.CmsgSpace(unix.SizeofUcred)

// prepare runs between socket and bind: the path is then born with mode 0600,
// and no datagram arrives without its sender's credentials.
func prepare(fd int) {
	unix.Fchmod(fd, 0o600)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
}

func readCredentials(part *unix.SocketControlMessage, m *Message) {
	if part.Header.Type != unix.SCM_CREDENTIALS {
		return
	}
	if c, err := unix.ParseUnixCredentials(part); err == nil {
		m.PID, m.UID = int(c.Pid), int(c.Uid)
	}
}
