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
)

func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of orphans: %w", err)
	}
	return nil
}

const (
	reapEvery = time.Second
	// reapAfter is how long a dead child stays to whoever started it. One that
	// nobody has waited for by then is an orphan that was given to us.
	reapAfter = 10 * time.Second
)

// reapOrphans reaps dead orphans, each by its pid, until over is closed. The
// workers, whose numbers must stay pinned until they are buried, are left out.
func (s *Supervisor) reapOrphans(over <-chan struct{}) {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	since := map[int]time.Time{}
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
		for pid := range since {
			if !dead[pid] {
				delete(since, pid)
			}
		}
		for pid := range dead {
			if at, known := since[pid]; !known {
				since[pid] = time.Now()
			} else if time.Since(at) > reapAfter {
				unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
	}
}

// deadChildren are the children of this process in state Z.
func deadChildren() map[int]bool {
	dead := map[int]bool{}
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
				dead[pid] = true
			}
		}
	}
	return dead
}
