//go:build unix

// Package capture keeps what a worker prints: through a FIFO, which outlives
// whoever reads it, into a log file that is rotated by size and age, and
// compressed.
//
// The worker comes first. Whatever happens to the log file (deleted, full
// disk, slow disk, no permission), the FIFO is read on; lines that cannot be
// kept are dropped and counted, and memory stays bounded. While nobody reads,
// the FIFO holds up to 1 MiB and then blocks the worker's writes until
// somebody does. Two never read one FIFO: a lock on it sees to that.
package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// MakeFIFO makes a FIFO at path with mode 0600, owned by uid and gid (-1 leaves
// one as it is). One that exists is kept, with what is in it.
func MakeFIFO(path string, uid, gid int) error {
	err := unix.Mkfifo(path, 0o600)
	if errors.Is(err, fs.ErrExist) {
		fi, serr := os.Lstat(path)
		if serr == nil && fi.Mode().Type() != fs.ModeNamedPipe {
			serr = fmt.Errorf("a file that is no FIFO is in the way (%v): move it away", fi.Mode())
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

// ErrRead: another process reads the FIFO, or another Capture of this one.
var ErrRead = errors.New("somebody else reads it")

// lockReader makes this description the only one that reads its FIFO. Systems
// that cannot lock a FIFO do not.
func lockReader(fd int) error {
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case unix.EINTR:
			continue
		case unix.EWOULDBLOCK:
			return ErrRead
		}
		return nil
	}
}

// openReader opens the reader's end: for writing too, so that it never
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

// Options of a Capture; the zero value takes the defaults.
type Options struct {
	MaxBytes int64         // size at which the log file is rotated; 0 means 10 MiB
	MaxAge   time.Duration // age of its first line at which it is rotated; 0 never
	Keep     int           // rotated files kept as FILE.1, FILE.2, ...; 0 keeps none
	Compress bool          // rotated files become FILE.1.gz, FILE.2.gz, ... when the log is quiet
}

func (o Options) check(what string) (Options, error) {
	if o.MaxBytes < 0 || o.Keep < 0 || o.MaxAge < 0 {
		return o, fmt.Errorf("capture %s: negative size, age or count", what)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	return o, nil
}

const (
	defaultMaxBytes = 10 << 20
	fifoBytes       = 1 << 20   // wanted capacity of the FIFO
	maxLine         = 256 << 10 // a longer line is split
)
