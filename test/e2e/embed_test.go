//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// The program that embeds a supervisor, run as its users would.
func TestEmbed(t *testing.T) {
	t.Parallel()
	d := configure(t, "")
	log, err := os.Create(filepath.Join(d.dir, "daemon.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(filepath.Join(bin, "embed"), "--dir", filepath.Join(d.dir, "embed"))
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	d.exited = exited
	go func() { d.cmd.Wait(); close(exited) }()
	sign := filepath.Join(d.dir, "embed", "leader.txt")
	var leader, token string
	var pid int
	read := func() {
		t.Helper()
		before := token
		eventually.Shows(d.t, "the hook has signed for a new leader", func() (bool, string) {
			b, err := os.ReadFile(sign)
			if err != nil {
				return false, err.Error()
			}
			_, err = fmt.Sscanf(string(b), "%s pid %d token %s", &leader, &pid, &token)
			return err == nil && token != before, string(b)
		})
	}
	read()
	for range 3 {
		kill(t, pid, syscall.SIGKILL)
		read()
		eventually.Shows(d.t, "the killed worker is back", func() (bool, string) {
			n := 0
			for _, p := range allProcesses() {
				if p.ppid == d.cmd.Process.Pid && strings.Contains(p.command, " worker ") {
					n++
				}
			}
			return n == 2, fmt.Sprint(n)
		})
	}
	if state := d.end(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("embed ended with %v", state)
	}
	d.gone()
	if _, err := os.Stat(sign); !os.IsNotExist(err) {
		t.Errorf("the hook was not told of the end: %v", err)
	}
}
