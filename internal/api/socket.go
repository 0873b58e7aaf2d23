package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/standbyd/standbyd/internal/sockpath"
)

// SocketName is the control socket's name in the runtime folder.
const SocketName = "standbyd.sock"

// ErrLive: somebody answers on the socket already.
var ErrLive = errors.New("a live daemon has this control socket")

// ErrNoDaemon: nobody answers on the socket, or there is none.
var ErrNoDaemon = errors.New("no standbyd is running there")

// Listen binds the control socket with mode 0600, or 0660 and the group that
// also may connect. A socket that a crash left
// behind is replaced, one on which somebody listens never, and a file that is
// no socket never. Closing the listener removes the path if it is still ours.
//
// Two Listens at the same moment may both find a stale socket: whoever calls
// it holds the supervisor's lock of the runtime folder already.
func Listen(path string, a Access) (net.Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if err := sockpath.Clear(path); errors.Is(err, sockpath.ErrLive) {
		return nil, fmt.Errorf("bind the control socket %s: %w", path, ErrLive)
	} else if err != nil {
		return nil, fmt.Errorf("bind the control socket %s: %w", path, err)
	}
	l, err := bindPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("bind the control socket %s: %w", path, withoutNet(err))
	}
	l.SetUnlinkOnClose(false)
	if err := admit(path, a); err != nil {
		l.Close()
		return nil, err
	}
	own, err := sockpath.Keep(path)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("bind the control socket %s: %w", path, err)
	}
	return &ownSocket{l, path, own, ownerID(filepath.Dir(path)), a}, nil
}

// admit lets the group connect: by the socket's mode, and by the right to pass
// through its folder (which stays closed to reading and writing).
func admit(path string, a Access) error {
	mode := fs.FileMode(0o600)
	if a.Group != "" {
		mode = 0o660
		if err := os.Chown(path, -1, a.GID); err != nil {
			return fmt.Errorf("give the control socket %s to group %s: %w; only root, or a member of the group, can do that", path, a.Group, withoutNet(err))
		}
		folder := filepath.Dir(path)
		if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&0o001 == 0 && ownerID(folder) == os.Geteuid() {
			if err := os.Chmod(folder, info.Mode().Perm()|0o011); err != nil {
				return fmt.Errorf("let group %s reach the control socket %s: %w", a.Group, path, err)
			}
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("protect the control socket %s: %w", path, err)
	}
	return nil
}

// ownSocket removes its path when it is closed, unless somebody replaced it.
type ownSocket struct {
	*net.UnixListener
	path string
	own  sockpath.Own
	// folderUID is whose the folder was when the socket was bound in it.
	folderUID int
	access    Access
}

func (s *ownSocket) Close() error {
	return errors.Join(s.own.Remove(), s.UnixListener.Close())
}

func checkPath(path string) error {
	if err := sockpath.Check(path); err != nil {
		return fmt.Errorf("use the control socket: %w: choose a shorter runtime_dir or --socket", err)
	}
	return nil
}

// explainDial says in words why the daemon could not be reached.
func explainDial(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		reason := "there is no socket " + path
		if errors.Is(err, syscall.ECONNREFUSED) {
			reason = "nobody listens on " + path
		}
		return fmt.Errorf("%w: %s", ErrNoDaemon, reason)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Errorf("not allowed to use the control socket %s: it belongs to %s and you are %s; run this command as %s, let a group in with control_group in its config, or run a standbyd of your own with another runtime_dir",
			path, ownerOf(path), person(os.Geteuid()), ownerOf(path))
	}
	return fmt.Errorf("connect to %s: %w", path, withoutNet(err))
}

// ownerOf names the owner of a path, or of the nearest folder of it that can
// be looked at.
func ownerOf(path string) string {
	for {
		if info, err := os.Lstat(path); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				return person(int(s.Uid))
			}
			return "another user"
		}
		up := filepath.Dir(path)
		if up == path {
			return "another user"
		}
		path = up
	}
}

func person(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", u.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}

// withoutNet takes the wrapping of package net off, which repeats the path.
func withoutNet(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err
}
