package api

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lookEvery is how often the path of the control socket is looked at.
const lookEvery = time.Second

// renew binds the path again, in a new folder if that is gone too. A folder
// that somebody else put there meanwhile is not used.
func (s *ownSocket) renew() (*ownSocket, error) {
	folder := filepath.Dir(s.path)
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711 // users of roles pass through to their own
	}
	if err := os.MkdirAll(folder, mode); err != nil {
		return nil, fmt.Errorf("make the folder of the control socket: %w", err)
	}
	if uid := ownerID(folder); uid != s.folderUID && uid != os.Geteuid() {
		return nil, fmt.Errorf("bind the control socket: %s belongs to uid %d now", folder, uid)
	}
	l, err := Listen(s.path, s.access)
	if err != nil {
		return nil, err
	}
	return l.(*ownSocket), nil
}

// ownerID is the user that a path belongs to, -1 if that cannot be told.
func ownerID(path string) int {
	if info, err := os.Stat(path); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(st.Uid)
		}
	}
	return -1
}

// watch looks after the path of a listener of [Listen] until quit is closed:
// when it is removed or replaced, serve gets the socket that is bound in its
// place, and tell a line about it.
func watch(l net.Listener, quit <-chan struct{}, serve func(net.Listener), tell func(string)) {
	own, ok := l.(*ownSocket)
	if !ok {
		return
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	said := ""
	for {
		select {
		case <-quit:
			return
		case <-look.C:
		}
		if !own.own.Lost() {
			said = ""
			continue
		}
		next, err := own.renew()
		if err != nil {
			if text := err.Error(); text != said { // once, not every second
				tell("the control socket is gone, and cannot be bound again yet: " + text)
				said = text
			}
			continue
		}
		said = ""
		own = next
		serve(own)
		tell("the control socket was removed; it is bound again: " + own.path)
	}
}
