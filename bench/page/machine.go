package page

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is what a machine said of itself at one moment.
type Machine struct {
	When                     time.Time
	System, CPU, Go, LoadAvg string
	// Stolen is how long, since it started, its processors had work and did not
	// run because the host of a virtual machine had other plans; -1 unknown.
	Stolen time.Duration
}

// Describe asks the machine. What it does not tell is "unknown".
func Describe() Machine {
	s := Machine{When: time.Now().UTC(), System: "unknown", CPU: "unknown", LoadAvg: "unknown", Stolen: -1, Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
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
	if b, err := os.ReadFile("/proc/stat"); err == nil {
		s.Stolen = stolen(string(b))
	}
	return s
}

// userHZ is what one unit of time in /proc/stat is of a second, on every architecture.
const userHZ = 100

// stolen is the eighth number of the first line of /proc/stat: all processors'.
func stolen(stat string) time.Duration {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return -1
	}
	n, err := strconv.ParseInt(f[8], 10, 64)
	if err != nil {
		return -1
	}
	return time.Duration(n) * (time.Second / userHZ)
}

// lost says which part of the processors' time the host took between two moments.
func lost(before, after Machine) string {
	d, took := after.Stolen-before.Stolen, after.When.Sub(before.When)
	if before.Stolen < 0 || d < 0 || took <= 0 {
		return "unknown"
	}
	return fmt.Sprintf("%v, %.2g %% of the time", d, 100*d.Seconds()/took.Seconds()/float64(runtime.NumCPU()))
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
| taken by the host meanwhile (steal) | %s |
`, before.When.Format("2006-01-02 15:04 UTC"), took.Seconds(), before.System, before.CPU, runtime.NumCPU(), before.Go, before.LoadAvg, after.LoadAvg, lost(before, after))
}
