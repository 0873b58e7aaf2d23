//go:build unix

package capture

import (
	"os"

	"golang.org/x/sys/unix"
)

// openAppend refuses to wait on a FIFO or to write to a device that somebody
// put in the log's place.
func openAppend(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, &os.PathError{Op: "open log", Path: path, Err: unix.EINVAL}
	}
	return f, nil
}
