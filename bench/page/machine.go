package page

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is what a machine said of itself at one moment.
type Machine struct {
	When                     time.Time
	System, CPU, Go, LoadAvg string
}

// Describe asks the machine. What it does not tell is "unknown".
func Describe() Machine {
	s := Machine{When: time.Now().UTC(), System: "unknown", CPU: "unknown", LoadAvg: "unknown", Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		s.System = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, line := range strings.Split(string(b), "\n") {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				s.CPU = strings.TrimSpace(v)
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(b)); len(f) >= 2 {
			s.LoadAvg = f[0] + " (1 min), " + f[1] + " (5 min)"
		}
	}
	return s
}

// Table writes what was known of the machine before and after a measurement
// that lasted for took.
func Table(w io.Writer, before, after Machine, took time.Duration) {
	fmt.Fprintf(w, `| machine | |
|---|---|
| measured | %s, in %.0f s |
| system | %s |
| processor | %s, %d of them |
| Go | %s |
| load average before | %s |
| load average after | %s |
`, before.When.Format("2006-01-02 15:04 UTC"), took.Seconds(), before.System, before.CPU, runtime.NumCPU(), before.Go, before.LoadAvg, after.LoadAvg)
}
