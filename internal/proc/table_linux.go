//go:build linux

package proc

import (
	"os"
	"strconv"
	"strings"
)

// PIDs lists the processes of /proc, in no order; threads are not among them,
// zombies are. One that is forked meanwhile can be missing.
func PIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Environ is the environment with which a process was started, as "NAME=value";
// nil if it may not be read. That of a zombie is empty.
func Environ(pid int) []string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// Parent is the process that a process belongs to; 0 for one that has none in
// this pid namespace.
func Parent(pid int) (int, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// After the name in parentheses: the state, then the parent.
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, errStat
	}
	return strconv.Atoi(fields[1])
}
