//go:build unix

package listen

import (
	"os"
	"syscall"
)

// unpolled gives the socket behind conn a second descriptor whose os.File is
// not in the runtime's poller. os.NewFile registers a non-blocking descriptor
// there, and every connection would then wake a holder that never accepts; and
// the File of a net.Listener switches the shared socket to blocking mode when
// its Fd is asked for, under the feet of those who do accept.
//
// So a File is made of a descriptor that is not pollable, and the socket is
// put in its place.
func unpolled(conn syscall.RawConn, name string) (*os.File, error) {
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open "+os.DevNull, err)
	}
	f := os.NewFile(uintptr(null), name)
	var derr error
	err = conn.Control(func(fd uintptr) { derr = replace(int(fd), null) })
	if err == nil {
		err = derr
	}
	if err != nil {
		f.Close()
		return nil, os.NewSyscallError("dup", err)
	}
	return f, nil
}
