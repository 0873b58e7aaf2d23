//go:build linux

package proc

import (
	"os"
	"strconv"
	"strings"
)

// PIDs lists the processes of /proc, in no order; threads are not among them,
// zombies are. One that is forked meanwhile can be missing.
func PIDs() ([]int, error) { return numbered("/proc") }

// numbered lists what in a folder has a number for a name.
func numbered(path string) ([]int, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
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
	st, err := readStat(pid, 0)
	return st.parent, err
}
