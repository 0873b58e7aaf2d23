//go:build linux

package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// Runs reports whether a thread of the process runs at this moment, or waits
// for a processor. seen is false if the process table does not show it.
func Runs(pid int) (runs, seen bool) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if i := bytes.LastIndexByte(text, ')'); i >= 0 && i+2 < len(text) {
			seen = true
			runs = runs || text[i+2] == 'R'
		}
	}
	return runs, seen
}
