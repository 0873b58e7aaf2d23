//go:build linux

package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// killLeftovers kills every process that carries the mark in its environment:
// descendants of a plugin that left its process group, or outlived a
// supervisor that was killed. It is called while no process of the plugin is
// meant to run. A descendant that cleared its environment is not found.
func killLeftovers(mark string) {
	// Again until a round finds nobody: one that was seen may have forked.
	for range 5 {
		if !killRound(mark) {
			return
		}
	}
}

func killRound(mark string) (found bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !carries(pid, mark) {
			continue
		}
		id, err := proc.Of(pid)
		if err != nil {
			continue
		}
		h, err := proc.OpenHandle(id)
		if err != nil {
			continue
		}
		if carries(pid, mark) && h.Signal(syscall.SIGKILL) == nil {
			found = true
			select {
			case <-h.Done():
			case <-time.After(time.Second):
			}
		}
		h.Close()
	}
	return found
}

// carries reads the environment with which a process was started. That of a
// zombie is empty.
func carries(pid int, mark string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if string(kv) == mark {
			return true
		}
	}
	return false
}
