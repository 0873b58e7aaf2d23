package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
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
// above it, if there is none.
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
		case unix.Access(at, unix.W_OK) != nil && at == dir:
			r.warn(key, "this user may not write into %s; standbyd has to run as another one, or with another folder", at)
		case unix.Access(at, unix.W_OK) != nil:
			r.warn(key, "%s is not there, and this user may not make it in %s; standbyd has to run as another one, or with another folder", dir, at)
		}
		return
	}
}
