//go:build unix

package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// descriptors are duplicates of what a child gets, in order of their numbers
// there. They are made without File.Fd, which can turn a description that
// other processes share to blocking mode.
type descriptors struct {
	list []uintptr
}

func (spec *Spec) descriptors() (d descriptors, err error) {
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return d, err
	}
	defer null.Close()
	out := spec.Stdout
	if out == nil {
		out = null
	}
	for _, f := range append([]*os.File{null, out, out}, spec.Listeners...) {
		if err := d.add(f); err != nil {
			return d, err
		}
	}
	if spec.Segment != nil {
		err = d.add(spec.Segment)
	}
	if err == nil && spec.Ready != nil {
		if spec.ReadyFD < len(d.list) {
			return d, fmt.Errorf("descriptor %d is taken, %d is the first free one", spec.ReadyFD, len(d.list))
		}
		for len(d.list) < spec.ReadyFD {
			d.list = append(d.list, noFile)
		}
		err = d.add(spec.Ready)
	}
	return d, err
}

// noFile leaves a number free in the child.
const noFile = ^uintptr(0)

func (d *descriptors) add(f *os.File) error {
	if f == nil {
		return errors.New("a file to pass on is nil")
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var derr error
	err = conn.Control(func(fd uintptr) {
		var n int
		if n, derr = dupCloexec(int(fd)); derr == nil {
			d.list = append(d.list, uintptr(n))
		}
	})
	if err == nil {
		err = derr
	}
	if err != nil {
		return fmt.Errorf("pass on %s: %w", f.Name(), err)
	}
	return nil
}

func (d *descriptors) close() {
	for _, fd := range d.list {
		if fd != noFile {
			syscall.Close(int(fd))
		}
	}
	d.list = nil
}
