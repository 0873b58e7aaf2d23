//go:build linux

package host

import (
	"os"
	"slices"
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
	pids, err := proc.PIDs()
	if err != nil {
		return false
	}
	for _, pid := range pids {
		if pid == os.Getpid() || !carries(pid, mark) {
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

// carries: the process was started with the mark in its environment.
func carries(pid int, mark string) bool { return slices.Contains(proc.Environ(pid), mark) }
