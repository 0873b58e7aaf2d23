//go:build linux

package logreader

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/proc"
)

// program tells builds apart: the file that this process executes.
func program() string {
	fi, err := os.Stat("/proc/self/exe")
	if err != nil {
		return ""
	}
	st := fi.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d:%d:%d", st.Dev, st.Ino, fi.Size(), fi.ModTime().UnixNano())
}

// peer tells who is at the other end; an error if it is another user.
func peer(u *net.UnixConn) (pid int, err error) {
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var cerr error
	err = raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err == nil {
		err = cerr
	}
	if err != nil {
		return 0, err
	}
	if int(cred.Uid) != os.Geteuid() {
		return 0, fmt.Errorf("it belongs to uid %d, and we are uid %d", cred.Uid, os.Geteuid())
	}
	return int(cred.Pid), nil
}

// record is reader.json: who reads for the role.
type record struct {
	Reader   proc.Identity `json:"reader"`
	Protocol int           `json:"protocol"`
	Program  string        `json:"program"`
}

func writeRecord(dir string, id proc.Identity) error {
	b, err := json.Marshal(record{id, protocol, program()})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, recordName)
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("record the log reader: %w", err)
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(append(b, '\n'))
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fmt.Errorf("record the log reader: %w", err)
	}
	return nil
}

// others finds readers of the folder by the record and by the mark, without
// the one in use.
func others(dir string, use proc.Identity) (found []proc.Identity) {
	if b, err := os.ReadFile(filepath.Join(dir, recordName)); err == nil {
		var r record
		// A number alone could be anybody's by now; a damaged record names nobody.
		if json.Unmarshal(b, &r) == nil && r.Reader.PID > 0 && r.Reader.Start != 0 && r.Reader.Boot != 0 && r.Reader != use &&
			marked(r.Reader.PID, dir) && proc.Judge(r.Reader) != proc.Gone {
			found = append(found, r.Reader)
		}
	}
	pids, _ := proc.PIDs()
	for _, pid := range pids {
		if !marked(pid, dir) {
			continue
		}
		if id, err := proc.Of(pid); err == nil && id != use && (len(found) == 0 || id != found[0]) {
			found = append(found, id)
		}
	}
	return found
}

// marked: the process was started as a reader of this folder, by our user.
func marked(pid int, dir string) bool {
	fi, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil || int(fi.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return false
	}
	return slices.Contains(proc.Environ(pid), mark+"="+dir)
}

const (
	endWait  = 10 * time.Second // for an orderly end
	sayEvery = 100 * time.Millisecond
	killWait = 5 * time.Second
)

// endReader ends a reader that is not used, in order if it can.
func endReader(id proc.Identity) error {
	p, err := launch.Adopt(id)
	if errors.Is(err, proc.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Close()
	// Said again and again: a process that is just beginning does not hear it.
	for end := time.Now().Add(endWait); time.Now().Before(end); {
		p.Signal(syscall.SIGUSR1)
		p.Signal(syscall.SIGCONT)
		if ended(p, sayEvery) {
			return nil
		}
	}
	p.Signal(syscall.SIGKILL)
	if ended(p, killWait) {
		return nil
	}
	return fmt.Errorf("log reader %v was killed and does not end", id)
}

func ended(p *launch.Process, within time.Duration) bool {
	select {
	case <-p.Done():
		return true
	case <-time.After(within):
		return false
	}
}

// EndAny ends whatever reads for the role in this folder: there is no
// supervisor for it, or one that reads by itself.
func EndAny(dir string) error {
	var all error
	for _, id := range others(dir, proc.Identity{}) {
		if err := endReader(id); err != nil && all == nil {
			all = err
		}
	}
	return all
}
