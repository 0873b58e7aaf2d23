package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/supervisor"
)

// Candidates are the files that are tried, in this order, when none is named.
var Candidates = []string{"standbyd.toml", "/etc/standbyd/standbyd.toml"}

// Find returns the first of [Candidates] that exists. If none does, the error
// wraps fs.ErrNotExist.
func Find() (string, error) {
	for _, file := range Candidates {
		if _, err := os.Stat(file); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return file, nil
		}
	}
	return "", noFileError{}
}

// noFileError is an fs.ErrNotExist.
type noFileError struct{}

func (noFileError) Error() string {
	return "no config file: there is neither " + strings.Join(Candidates, " nor ") + "; name one with -c FILE"
}

func (noFileError) Unwrap() error { return fs.ErrNotExist }

// DefaultRuntimeDir is where the control socket and the segments live unless
// the file says otherwise: /run/standbyd for root, else a folder of the user's.
func DefaultRuntimeDir() string {
	dir, _ := defaultRuntimeDir()
	return dir
}

// defaultRuntimeDir also names the variable that the folder comes from, if any.
func defaultRuntimeDir() (dir, variable string) {
	uid := os.Getuid()
	if uid == 0 {
		return "/run/standbyd", ""
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "standbyd"), "XDG_RUNTIME_DIR"
	}
	return "/tmp/standbyd-" + strconv.Itoa(uid), ""
}

// DefaultStateDir is where generations, history and logs live unless the file
// says otherwise.
func DefaultStateDir() string {
	dir, _ := defaultStateDir()
	return dir
}

func defaultStateDir() (dir, variable string) {
	if os.Getuid() == 0 {
		return "/var/lib/standbyd", ""
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "standbyd"), "XDG_STATE_HOME"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "/var/tmp/standbyd-" + strconv.Itoa(os.Getuid()), ""
	}
	return filepath.Join(home, ".local", "state", "standbyd"), "HOME"
}

// folder looks whether standbyd can have its folder: it makes it, with those
// above it, if there is none, and refuses one that others may write to.
func (r *reader) folder(key, dir string) {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		case errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil:
			r.warn(key, "cannot look at %s: %v", at, errors.Unwrap(err))
		case !info.IsDir():
			r.bad(key, "%s is a file, not a folder", at)
		default:
			r.writable(key, dir, at, info)
			if msg := supervisor.Exposed(dir); msg != "" && at == dir {
				r.bad(key, "%s", msg)
			}
		}
		return
	}
}

// writable warns if this user may not write into at, which is dir or what
// there is of its path.
func (r *reader) writable(key, dir, at string, info fs.FileInfo) {
	err := unix.Access(at, unix.W_OK)
	if err == nil {
		return
	}
	field := key[strings.LastIndexByte(key, '.')+1:]
	what := fmt.Sprintf("this user (uid %d) may not write into %s", os.Geteuid(), dir)
	if at != dir {
		what = fmt.Sprintf("%s is not there, and this user (uid %d) may not make it in %s", dir, os.Geteuid(), at)
	}
	who := "another user"
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		who = fmt.Sprintf("uid %d, whose folder that is", st.Uid)
	}
	if errors.Is(err, unix.EROFS) {
		r.warn(key, "%s is on a file system that is read-only; mount it writable, or set %s to a folder that can be written to", dir, field)
		return
	}
	r.warn(key, "%s; run standbyd as %s, or set %s to a folder of your own", what, who, field)
}

// sameFolder also tells by two names of one folder that exists.
func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
