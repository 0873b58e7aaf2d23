//go:build linux

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Cgroup is a cgroup v2 by its folder. Safe for concurrent use. A cgroup whose
// folder is gone has no processes: the kernel removes none that has.
type Cgroup struct{ path string }

// OpenCgroup verifies that path is the folder of a cgroup v2. fs.ErrNotExist if
// there is none.
func OpenCgroup(path string) (*Cgroup, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return nil, fmt.Errorf("open cgroup %s: %w", path, err)
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, fmt.Errorf("open cgroup %s: not in a cgroup v2 file system", path)
	}
	return &Cgroup{filepath.Clean(path)}, nil
}

// RecordedCgroup opens the cgroup that was recorded for id in the folder of its
// segment (see CgroupRecord). nil if there is no record, or not of a cgroup
// that can be seen from here. gone is true if it was recorded and exists no
// more.
func RecordedCgroup(dir string, id Identity) (c *Cgroup, gone bool) {
	path, err := os.Readlink(CgroupRecord(dir, id))
	if err != nil || !filepath.IsAbs(path) {
		return nil, false
	}
	c, err = OpenCgroup(path)
	if err != nil {
		// Its parent must be a cgroup, or we see another file system there.
		if _, perr := OpenCgroup(filepath.Dir(path)); perr == nil && errors.Is(err, fs.ErrNotExist) {
			return nil, true
		}
		return nil, false
	}
	return c, false
}

// Path is the cgroup's folder.
func (c *Cgroup) Path() string { return c.path }

// Populated reports whether a process is in the cgroup or below it that has not
// ended: files and memory of those that have are released. Zombies do not count.
func (c *Cgroup) Populated() (bool, error) {
	b, err := os.ReadFile(c.path + "/cgroup.events")
	if removed(err) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("read the state of a cgroup: %w", err)
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("populated ")); ok {
			return strings.TrimSpace(string(v)) != "0", nil
		}
	}
	return true, fmt.Errorf("read the state of cgroup %s: it does not say whether it is populated", c.path)
}

// PIDs lists the processes in the cgroup and below it, by their numbers in the
// caller's pid namespace; 0 is one that is outside of it. One all of whose
// threads are ending is not listed.
func (c *Cgroup) PIDs() (pids []int, err error) {
	err = filepath.WalkDir(c.path, func(path string, e fs.DirEntry, err error) error {
		if removed(err) {
			return nil
		}
		if err != nil || !e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path + "/cgroup.procs")
		if errors.Is(err, syscall.EOPNOTSUPP) || removed(err) { // a threaded one, whose processes are listed above it
			return nil
		}
		for field := range strings.FieldsSeq(string(b)) {
			if pid, cerr := strconv.Atoi(field); cerr == nil {
				pids = append(pids, pid)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the processes of a cgroup: %w", err)
	}
	return pids, nil
}

// End sends SIGKILL to everything in the cgroup and below it. Where the kernel
// does that in one step (Linux 5.14) what is forked meanwhile is reached too;
// where it does not, or the caller may not ask for it, processes are killed one
// by one, and the caller repeats it until the cgroup is empty. The error says
// why something may be left.
func (c *Cgroup) End() error {
	if c.kill() == nil {
		return nil
	}
	return c.killEach()
}

func (c *Cgroup) killEach() error {
	pids, err := c.PIDs()
	if err != nil {
		return err
	}
	held := map[int]*Handle{}
	defer func() {
		for _, h := range held {
			h.Close()
		}
	}()
	for _, pid := range pids {
		if pid <= 0 || pid == os.Getpid() {
			continue
		}
		if id, err := Of(pid); err == nil {
			if h, err := OpenHandle(id); err == nil {
				held[pid] = h
			}
		}
	}
	// Who is listed again, and still lives afterwards, had the number all the time.
	if pids, err = c.PIDs(); err != nil {
		return err
	}
	for _, pid := range pids {
		h := held[pid]
		if h == nil || h.Judge() == Gone {
			continue
		}
		if serr := h.Signal(syscall.SIGKILL); serr != nil && !errors.Is(serr, ErrGone) {
			err = fmt.Errorf("kill a cgroup's processes: %w", serr)
		}
	}
	return err
}

// kill is syscall.EACCES or EPERM if the caller may not, and ENOTSUP on a
// kernel that cannot.
func (c *Cgroup) kill() error {
	f, err := os.OpenFile(c.path+"/cgroup.kill", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(c.path + "/cgroup.events"); removed(serr) {
			return nil
		}
		return fmt.Errorf("kill cgroup %s: %w", c.path, syscall.ENOTSUP)
	}
	if err != nil {
		return fmt.Errorf("kill a cgroup: %w", err)
	}
	defer f.Close()
	if _, err = f.WriteString("1"); err != nil && !removed(err) {
		return fmt.Errorf("kill a cgroup: %w", err)
	}
	return nil
}

// removed: the folder went before or while it was looked at.
func removed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
