//go:build linux

package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of orphans: %w", err)
	}
	return nil
}

const (
	reapEvery = time.Second
	// reapAfter is how long a dead child stays to whoever started it, counted
	// in looks, so that time in which this process was stopped does not count.
	// One that nobody has waited for by then is an orphan that was given to us.
	reapAfter = 3
)

// reapOrphans reaps dead orphans, each by its pid, until over is closed. The
// workers, whose numbers must stay pinned until they are buried, are left out.
func (s *Supervisor) reapOrphans(over <-chan struct{}) {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	looks := map[proc.Identity]int{}
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		dead := deadChildren()
		for _, r := range s.loops() {
			for _, w := range r.published.Load().Workers {
				delete(dead, w.PID)
			}
		}
		seen := map[proc.Identity]int{}
		for pid, id := range dead {
			if seen[id] = looks[id] + 1; seen[id] > reapAfter {
				unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
		looks = seen
	}
}

// anyDead tells whether some child is dead and not reaped, without a look at
// each of them: there may be a thousand.
func anyDead() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// deadChildren are the children of this process in state Z, by pid.
func deadChildren() map[int]proc.Identity {
	dead := map[int]proc.Identity{}
	if !anyDead() {
		return dead
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(b)) {
			stat, err := os.ReadFile("/proc/" + field + "/stat")
			if err != nil {
				continue
			}
			rest := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
			if pid, err := strconv.Atoi(field); err == nil && len(rest) > 0 && rest[0] == "Z" {
				if id, err := proc.Of(pid); err == nil {
					dead[pid] = id
				}
			}
		}
	}
	return dead
}
