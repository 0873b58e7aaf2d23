//go:build linux

package conformance

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/internal/cgroup"
	"github.com/standbyd/standbyd/internal/proc"
)

// TestA01_GrandchildrenSurviveStop: a worker's children that left its process
// group, one of which holds a port, are gone when the stop is over; the port
// is free, and the log names who escaped.
func TestA01_GrandchildrenSurviveStop(t *testing.T) {
	for _, c := range []struct {
		name, cgroups, flags string
	}{
		{"by their environment", "off", ""},
		{"by their cgroup", "auto", `, "-bare"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.cgroups == "auto" {
				h, err := cgroup.Open("conformance-"+strconv.Itoa(os.Getpid()), nil, false)
				if err != nil {
					t.Skipf("no cgroups can be made here: %v", err)
				}
				h.Close()
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := l.Addr().String()
			l.Close()
			d := newDaemon(t, fmt.Sprintf(`cgroups = %q
[role.kv]
command = [$TW, "-fork", "2", "-setsid", "-hold", %q, "-pids", "$DIR/pids"%s]
workers = 2
`, c.cgroups, address, c.flags))
			d.must("wait", "kv", "--for", "ready", "-T", "1m")
			b, err := os.ReadFile(filepath.Join(d.dir, "pids"))
			if err != nil {
				t.Fatal(err)
			}
			var escaped []proc.Identity
			for field := range strings.FieldsSeq(string(b)) {
				pid, _ := strconv.Atoi(field)
				escaped = append(escaped, identity(t, pid))
			}
			if len(escaped) != 4 {
				t.Fatalf("%d children, want 4", len(escaped))
			}
			if l, err := net.Listen("tcp", address); err == nil {
				l.Close()
				t.Fatal("nobody holds the port, so this shows nothing")
			}
			d.must("shutdown")
			if code := d.wait(); code != 0 {
				t.Errorf("standbyd ended with %d", code)
			}
			for _, id := range escaped {
				if v := proc.Judge(id); v != proc.Gone {
					t.Errorf("pid %d is %v after the stop", id.PID, v)
				}
				if !strings.Contains(d.output.String(), fmt.Sprintf("pid %d", id.PID)) {
					t.Errorf("pid %d, which escaped, is not named", id.PID)
				}
			}
			if l, err := net.Listen("tcp", address); err != nil {
				t.Errorf("the port is not free: %v", err)
			} else {
				l.Close()
			}
		})
	}
}
