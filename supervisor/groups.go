package supervisor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/cgroup"
	"github.com/standbyd/standbyd/internal/proc"
)

// CgroupMode says whether workers get cgroups.
type CgroupMode string

const (
	CgroupsAuto CgroupMode = "auto" // one for each worker, where they can be made
	CgroupsOff  CgroupMode = "off"
)

// groups are the cgroups of a supervisor. Safe for concurrent use; all is nil
// before Run.
type groups struct {
	home *cgroup.Home // nil: none can be made
	all  []string     // folders of homes: ours, and those in which earlier lives of us left something
}

// homesPath lists the folders of homes, one a line. It is in the runtime
// folder, so that only the supervisor's user can write it: what is killed and
// removed by it is ours.
func homesPath(runtimeDir string) string { return filepath.Join(runtimeDir, "cgroups") }

// openGroups makes the home of this supervisor's cgroups, and cleans up what
// earlier ones left. Roles with limits make it an error if that cannot be.
func (s *Supervisor) openGroups() error {
	b, err := os.ReadFile(homesPath(s.config.RuntimeDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the list of cgroups: %w", err)
	}
	s.groups.all = slices.DeleteFunc(strings.Split(string(b), "\n"), func(dir string) bool {
		_, err := proc.OpenCgroup(dir)
		return !filepath.IsAbs(dir) || err != nil
	})
	if s.config.Cgroups != CgroupsOff {
		if err := s.makeHome(); err != nil {
			return err
		}
	}
	if err := s.saveHomes(); err != nil {
		s.closeGroups()
		return err
	}
	s.sweepGroups()
	return nil
}

func (s *Supervisor) makeHome() error {
	var controllers []string
	var first *RoleConfig
	for i := range s.config.Roles {
		c := &s.config.Roles[i]
		for _, name := range c.Confine.groupLimits().Controllers() {
			if !slices.Contains(controllers, name) {
				controllers = append(controllers, name)
			}
			if first == nil {
				first = c
			}
		}
	}
	dir, err := filepath.EvalSymlinks(s.config.RuntimeDir)
	if err != nil {
		return fmt.Errorf("name the cgroup of the supervisor: %w", err)
	}
	sum := sha256.Sum256([]byte(dir))
	home, err := cgroup.Open(hex.EncodeToString(sum[:4]), controllers, s.config.OwnCgroup)
	switch {
	case err == nil:
		s.groups.home = home
		if !slices.Contains(s.groups.all, home.Dir()) {
			s.groups.all = append(s.groups.all, home.Dir())
		}
	case first != nil:
		return &ConfigError{Role: first.Name, Field: first.Confine.groupLimit(), Msg: "cannot be applied here", Err: err}
	}
	return nil
}

func (s *Supervisor) saveHomes() error {
	if len(s.groups.all) == 0 {
		if err := os.Remove(homesPath(s.config.RuntimeDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget the list of cgroups: %w", err)
		}
		return nil
	}
	return writeWhole(homesPath(s.config.RuntimeDir), []byte(strings.Join(s.groups.all, "\n")+"\n"), 0o600)
}

// sweepGroups ends what is in cgroups of ours and is no listed worker that
// lives: those will be adopted, or ended one by one.
func (s *Supervisor) sweepGroups() {
	var kept []string
	entries, _ := os.ReadDir(rolesDir(s.config.RuntimeDir))
	for _, e := range entries {
		list, _ := readWorkers(filepath.Join(roleDir(s.config.RuntimeDir, e.Name()), "workers.json"))
		for _, w := range list.Workers {
			if proc.Judge(w.Identity) != proc.Gone {
				kept = append(kept, w.Cgroup)
			}
		}
	}
	for _, home := range s.groups.all {
		for _, role := range cgroup.Roles(home) {
			for _, dir := range cgroup.List(home, role) {
				if slices.Contains(kept, dir) {
					continue
				}
				c, err := proc.OpenCgroup(dir)
				if err != nil {
					continue
				}
				if pids, _ := c.PIDs(); len(pids) > 0 {
					s.bus.publish(Event{Type: EventWarning, Role: role, PID: pids[0], Text: "left behind in " + dir + " by an earlier supervisor, ended: " + describePIDs(pids)})
				}
				if err := endGroup(c, endWait); err != nil {
					s.bus.publish(Event{Type: EventWarning, Role: role, Text: err.Error()})
				}
			}
		}
	}
}

// closeGroups removes the homes in which nothing is left, and undoes what
// makeHome changed of this process's own cgroup.
func (s *Supervisor) closeGroups() {
	if h := s.groups.home; h != nil {
		if err := h.Close(); err != nil {
			s.bus.publish(Event{Type: EventWarning, Text: "cgroups are left: " + err.Error()})
		}
		s.groups.home = nil
	}
	s.groups.all = slices.DeleteFunc(s.groups.all, func(dir string) bool {
		for _, role := range cgroup.Roles(dir) {
			os.Remove(filepath.Join(dir, role)) // if it is empty
		}
		err := os.Remove(dir)
		return err == nil || errors.Is(err, fs.ErrNotExist)
	})
	if err := s.saveHomes(); err != nil {
		s.bus.publish(Event{Type: EventWarning, Text: err.Error()})
	}
}

// ours opens a cgroup that a list of workers names, if it is one of ours: the
// list is in a folder that the role's user can write to.
func (g *groups) ours(role, dir string) *proc.Cgroup {
	if !slices.Contains(g.all, filepath.Dir(filepath.Dir(dir))) || filepath.Base(filepath.Dir(dir)) != role || filepath.Clean(dir) != dir {
		return nil
	}
	c, err := proc.OpenCgroup(dir)
	if err != nil {
		return nil
	}
	return c
}

// group makes the cgroup of a worker's next process. nil: there are none here.
func (r *roleLoop) group(i int) (*proc.Cgroup, error) {
	home := r.sup.groups.home
	if home == nil {
		return nil, nil
	}
	limits := r.config.Confine.groupLimits()
	uid, _ := r.user.owner()
	c, err := home.Make(r.config.Name, strconv.Itoa(i), limits, uid)
	if err != nil && limits == (cgroup.Limits{}) {
		r.emit(Event{Type: EventWarning, Worker: r.st.workers[i].name, Text: fmt.Sprintf("started without a cgroup of its own: %v", err)})
		return nil, nil
	}
	return c, err
}

// record lets others find the cgroup of a process (see proc.CgroupRecord).
func (r *roleLoop) record(c *proc.Cgroup, id proc.Identity) error {
	path := proc.CgroupRecord(r.paths.dir, id)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.Symlink(c.Path(), path)
	}
	if err != nil {
		return fmt.Errorf("record the cgroup of the new process: %w", err)
	}
	return nil
}

// endGroupOf ends what a worker left in its cgroup, says what it was, and
// removes the cgroup. Safe for any goroutine.
func (r *roleLoop) endGroupOf(name string, id proc.Identity, c *proc.Cgroup) {
	if c == nil {
		return
	}
	pids, _ := c.PIDs()
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		group, err := unix.Getpgid(pid)
		return pid == id.PID || err == nil && group == id.PID
	})
	if len(pids) > 0 {
		r.emit(Event{Type: EventWarning, Worker: name, PID: pids[0], Text: "was left behind by " + name + " outside its process group, ended by its cgroup: " + describePIDs(pids)})
	}
	if err := endGroup(c, endWait); err != nil {
		r.emit(Event{Type: EventWarning, Worker: name, Text: err.Error()})
		return // the record stays: a claimant must see that something is left
	}
	os.Remove(proc.CgroupRecord(r.paths.dir, id))
}

// endGroup kills everything in a cgroup, waits until it is empty, and removes
// it. An error means that something is left.
func endGroup(c *proc.Cgroup, limit time.Duration) error {
	const pause = 2 * time.Millisecond
	for deadline := time.Now().Add(limit); ; time.Sleep(pause) {
		populated, err := c.Populated()
		if err != nil {
			return err
		}
		late := time.Now().After(deadline)
		if !populated {
			// The last one may be on its way out still.
			if err := cgroup.Remove(c.Path()); late || !errors.Is(err, unix.EBUSY) {
				return err
			}
			continue
		}
		err = c.End()
		if late {
			pids, _ := c.PIDs()
			return errors.Join(fmt.Errorf("processes in %s were killed and do not end: %s", c.Path(), describePIDs(pids)), err)
		}
	}
}

// describePIDs says which processes, in which state.
func describePIDs(pids []int) string {
	list := make([]string, 0, len(pids))
	for _, pid := range pids {
		text := fmt.Sprintf("pid %d", pid)
		if program, state := programOf(pid); program != "" {
			text += fmt.Sprintf(" (%s, state %s)", program, state)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// programOf is the name of what a process executes, and its state; both are
// empty where that cannot be seen.
func programOf(pid int) (program, state string) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if err != nil || open < 0 || end < open || len(b) <= end+2 {
		return "", ""
	}
	return printable(string(b[open+1 : end])), string(b[end+2])
}
