//go:build unix

// Package capture keeps what a worker prints: through a FIFO, which outlives
// the supervisor, into a log file that is rotated.
//
// The worker comes first. Whatever happens to the log file (deleted, full
// disk, slow disk, no permission), the FIFO is read on; lines that cannot be
// kept are dropped and counted, and memory stays bounded. While no supervisor
// runs, the FIFO holds up to 1 MiB and then blocks the worker's writes until
// the next one reads.
package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// MakeFIFO makes a FIFO at path with mode 0600, owned by uid and gid (-1 leaves
// one as it is). One that exists is kept, with what is in it.
func MakeFIFO(path string, uid, gid int) error {
	err := unix.Mkfifo(path, 0o600)
	if errors.Is(err, fs.ErrExist) {
		fi, serr := os.Lstat(path)
		if serr == nil && fi.Mode().Type() != fs.ModeNamedPipe {
			serr = fmt.Errorf("a file that is no FIFO is in the way (%v)", fi.Mode())
		}
		err = serr
	}
	if err == nil {
		err = os.Chmod(path, 0o600) // whatever the umask is
	}
	if err == nil && (uid >= 0 || gid >= 0) {
		err = os.Lchown(path, uid, gid)
	}
	if err != nil {
		return fmt.Errorf("make FIFO %s: %w", path, err)
	}
	return nil
}

// OpenWriter opens the end that becomes a worker's descriptor 1 and 2: for
// reading too, so that a write without a supervisor waits instead of ending
// the worker by SIGPIPE; in blocking mode, as programs expect; and outside the
// poller, so that passing it on changes nothing.
func OpenWriter(path string) (*os.File, error) {
	fd, err := openFIFO(path, unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	enlarge(fd)
	return os.NewFile(uintptr(fd), path), nil
}

// openReader opens the supervisor's end: for writing too, so that it never
// sees the end of the file when a worker ends.
func openReader(path string) (*os.File, error) {
	fd, err := openFIFO(path, unix.O_RDWR|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	enlarge(fd)
	return os.NewFile(uintptr(fd), path), nil
}

func openFIFO(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return -1, &os.PathError{Op: "open FIFO", Path: path, Err: err}
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
			unix.Close(fd)
			return -1, fmt.Errorf("open FIFO %s: it is none", path)
		}
		return fd, nil
	}
}

// Options of Start; the zero value takes the defaults.
type Options struct {
	MaxBytes int64 // size at which the log file is rotated; 0 means 10 MiB
	Keep     int   // rotated files kept as FILE.1, FILE.2, ...; 0 keeps none
}

const (
	defaultMaxBytes = 10 << 20
	fifoBytes       = 1 << 20  // wanted capacity of the FIFO
	maxLine         = 64 << 10 // a longer line is split
)
