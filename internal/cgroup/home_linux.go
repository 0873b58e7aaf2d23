//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// aside is where a supervisor goes that must not be in its own cgroup.
const aside = "supervisor"

const prefix = "standbyd-"

// Home is the cgroup below which one supervisor makes those of its workers.
// Make and Remove are safe for concurrent use.
type Home struct {
	base    string   // the supervisor's own
	dir     string   // base/standbyd-ID
	passed  []string // controllers that we have base pass on
	moved   bool     // into base/supervisor
	control []string // controllers of the workers' cgroups
}

// Open makes the home called id, or finds it, with the controllers for what is
// below. Where the supervisor must leave its own cgroup for that, mayMove
// allows it: this concerns the whole process. The error wraps ErrNone,
// ErrController, or one of the system, mostly fs.ErrPermission.
func Open(id string, controllers []string, mayMove bool) (_ *Home, err error) {
	dir, _, err := own()
	if err != nil {
		return nil, err
	}
	if filepath.Base(dir) == aside {
		dir = filepath.Dir(dir)
	}
	h := &Home{base: dir, dir: filepath.Join(dir, prefix+id), control: controllers}
	if err := os.Mkdir(h.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make a cgroup for workers: %w", err)
	}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	if len(controllers) == 0 {
		return h, nil
	}
	if err := offers(h.base, controllers); err != nil {
		return nil, err
	}
	if err := h.pass(mayMove); err != nil {
		return nil, err
	}
	return h, passOn(h.dir, controllers)
}

// Dir is the home's folder.
func (h *Home) Dir() string { return h.dir }

// pass makes our own cgroup pass the controllers on, and moves us aside if the
// kernel wants it.
func (h *Home) pass(mayMove bool) error {
	on, err := words(h.base, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	var missing []string
	for _, c := range h.control {
		if !on[c] {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Join(h.base, "cgroup.type")); err == nil { // the root has none, and may have processes
		if err := h.stepAside(mayMove); err != nil {
			return err
		}
	}
	if err := passOn(h.base, missing); err != nil {
		return err
	}
	h.passed = missing
	return nil
}

func (h *Home) stepAside(mayMove bool) error {
	others, err := h.others()
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return fmt.Errorf("limits need a cgroup of the supervisor's own, and %s also has %s: start it by systemd with Delegate=yes, or with systemd-run --scope",
			h.base, describe(others))
	}
	here, _, err := own()
	if err != nil || here != h.base {
		return err
	}
	if !mayMove {
		return fmt.Errorf("limits need the supervisor to leave its cgroup %s, and this program does not allow that", h.base)
	}
	if err := os.Mkdir(filepath.Join(h.base, aside), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a cgroup for the supervisor itself: %w", err)
	}
	if err := Join(filepath.Join(h.base, aside), os.Getpid()); err != nil {
		return err
	}
	h.moved = true
	return nil
}

// others are the processes in our own cgroup besides us.
func (h *Home) others() (pids []int, err error) {
	b, err := os.ReadFile(filepath.Join(h.base, "cgroup.procs"))
	if err != nil {
		return nil, fmt.Errorf("list the processes of a cgroup: %w", err)
	}
	for field := range strings.FieldsSeq(string(b)) {
		if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func describe(pids []int) string {
	const most = 5
	var list []string
	for _, pid := range pids[:min(most, len(pids))] {
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		list = append(list, fmt.Sprintf("pid %d (%s)", pid, strings.TrimSpace(string(comm))))
	}
	if more := len(pids) - most; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// Close undoes what Open did, if nothing is left below: the home is removed,
// controllers are passed on no more, and the process is where it was. What is
// still in use stays, and is named by the error.
func (h *Home) Close() error {
	entries, _ := os.ReadDir(h.dir)
	for _, e := range entries {
		if e.IsDir() {
			os.Remove(filepath.Join(h.dir, e.Name())) // a role's, if it is empty
		}
	}
	err := os.Remove(h.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil || h.hasNeighbours() {
		return err
	}
	if len(h.passed) > 0 {
		if err := write(h.base, "cgroup.subtree_control", "-"+strings.Join(h.passed, " -")); err != nil {
			return err
		}
		h.passed = nil
	}
	if h.moved {
		if err := Join(h.base, os.Getpid()); err != nil {
			return err
		}
		h.moved = false
		return os.Remove(filepath.Join(h.base, aside))
	}
	return nil
}

// hasNeighbours: another supervisor of this process needs what we have set up.
func (h *Home) hasNeighbours() bool {
	homes, _ := filepath.Glob(filepath.Join(h.base, prefix+"*"))
	return len(homes) > 0
}

// Make makes the cgroup of one process of a worker. Its name is never used
// again. uid may kill it, if it is not -1.
func (h *Home) Make(role, worker string, l Limits, uid int) (*proc.Cgroup, error) {
	parent := filepath.Join(h.dir, role)
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the cgroup of a role: %w", err)
	}
	if len(h.control) > 0 {
		if err := passOn(parent, h.control); err != nil {
			return nil, err
		}
	}
	var dir string
	for {
		dir = filepath.Join(parent, worker+"."+strconv.FormatInt(time.Now().UnixNano(), 36))
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make the cgroup of a worker: %w", err)
		}
	}
	err := limit(dir, l)
	if err == nil && uid >= 0 {
		// Whoever takes over from the worker runs as its user.
		if err = os.Chown(filepath.Join(dir, "cgroup.kill"), uid, -1); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		os.Remove(dir)
		return nil, err
	}
	return proc.OpenCgroup(dir)
}

func limit(dir string, l Limits) error {
	const period = 100_000 // microseconds
	for _, s := range []struct {
		set   bool
		file  string
		value string
	}{
		{l.Memory != 0, "memory.max", strconv.FormatInt(l.Memory, 10)},
		{l.CPU != 0, "cpu.max", fmt.Sprintf("%d %d", l.CPU*period/100, period)},
		{l.PIDs != 0, "pids.max", strconv.Itoa(l.PIDs)},
	} {
		if !s.set {
			continue
		}
		if err := write(dir, s.file, s.value); err != nil {
			return fmt.Errorf("limit a worker: %w", err)
		}
	}
	return nil
}

// List names the cgroups of a role in a home, of any life of the supervisor.
func List(home, role string) (dirs []string) {
	entries, _ := os.ReadDir(filepath.Join(home, role))
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(home, role, e.Name()))
		}
	}
	return dirs
}

// Roles names the roles that have cgroups in a home.
func Roles(home string) (names []string) {
	entries, _ := os.ReadDir(home)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// Join moves a process into a cgroup.
func Join(dir string, pid int) error {
	return write(dir, "cgroup.procs", strconv.Itoa(pid))
}

// Remove removes a cgroup with those below it, all of which must be empty.
func Remove(dir string) error {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			if err := Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a cgroup: %w", err)
	}
	return nil
}

// passOn lets the cgroups below dir use the controllers.
func passOn(dir string, controllers []string) error {
	return write(dir, "cgroup.subtree_control", "+"+strings.Join(controllers, " +"))
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write %q: %w", value, err)
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("write %q: %w", value, err)
	}
	return nil
}

func words(dir, file string) (map[string]bool, error) {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	set := map[string]bool{}
	for w := range strings.FieldsSeq(string(b)) {
		set[w] = true
	}
	return set, nil
}

func sortedWords(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
