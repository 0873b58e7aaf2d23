//go:build linux

package proc

import "strconv"

// Runs reports whether a thread of the process runs at this moment, or waits
// for a processor. seen is false if the process table does not show it.
func Runs(pid int) (runs, seen bool) {
	tids, _ := numbered("/proc/" + strconv.Itoa(pid) + "/task")
	for _, tid := range tids {
		st, err := readStat(pid, tid)
		if err != nil {
			continue // it has ended
		}
		seen = true
		runs = runs || st.state == 'R'
	}
	return runs, seen
}
