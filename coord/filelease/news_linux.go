//go:build linux

package filelease

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// listen asks for the events of the folder: a record that is removed, and a
// KEY.live that is closed by one who could write it, as a holder at its end.
func (s *Store) listen(key string) news {
	if s.network { // it tells of this machine's changes only
		return news{}
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return news{}
	}
	f := os.NewFile(uintptr(fd), "inotify")
	const mask = unix.IN_CLOSE_WRITE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	if _, err := unix.InotifyAddWatch(fd, s.dir, mask); err != nil {
		f.Close()
		return news{}
	}
	changed := make(chan struct{}, 1)
	go func() {
		b := make([]byte, 64*1024)
		for {
			n, err := f.Read(b)
			if err != nil {
				return // closed
			}
			if concerns(b[:n], key) {
				signal(changed)
			}
		}
	}()
	return news{changed, f}
}

// concerns reports whether one of the events is about the key.
func concerns(b []byte, key string) bool {
	for len(b) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(b[4:])
		size := int(binary.NativeEndian.Uint32(b[12:]))
		if size > len(b)-unix.SizeofInotifyEvent {
			return true
		}
		name := string(bytes.TrimRight(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size], "\x00"))
		b = b[unix.SizeofInotifyEvent+size:]
		switch {
		case mask&(unix.IN_Q_OVERFLOW|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0:
			return true
		case name == key+liveSuffix, name == key+leaseSuffix && mask&unix.IN_CLOSE_WRITE == 0:
			return true
		}
	}
	return false
}
