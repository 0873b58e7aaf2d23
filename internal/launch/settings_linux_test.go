//go:build linux

package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/launch/stage"
)

func init() { programs["settings"] = settings }

// settings prints what the stage has set of the process.
func settings([]string) {
	prio, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	oom, _ := os.ReadFile("/proc/self/oom_score_adj")
	fmt.Printf("nice=%d\noom=%s\n", 20-prio, strings.TrimSpace(string(oom)))
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "NoNewPrivs:"); ok {
			fmt.Printf("nnp=%s\n", strings.TrimSpace(v))
		}
	}
	limits, _ := os.ReadFile("/proc/self/limits") // the runtime's own getrlimit tells what it raised
	for line := range strings.Lines(string(limits)) {
		for title, name := range map[string]string{"Max open files": "nofile", "Max core file size": "core", "Max address space": "as", "Max processes": "nproc", "Max locked memory": "memlock"} {
			if rest, ok := strings.CutPrefix(line, title); ok {
				f := strings.Fields(rest)
				fmt.Printf("%s=%s:%s\n", name, f[0], f[1])
			}
		}
	}
}

func number(n int) *int { return &n }

func TestStageSetsWhatWasOrdered(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("lowering niceness needs root")
	}
	out := output(t)
	spec := self("settings")
	spec.Stdout = out
	const as = 64 << 30
	spec.Settings = Settings{
		Nice: number(-3), OOMScoreAdj: number(777), NoNewPrivs: true,
		Limits: []Limit{{"nofile", 200, 200}, {"core", 0, 4096}, {"nproc", 5000, 6000}, {"memlock", 65536, 131072}, {"as", as, as}},
	}
	p := start(t, spec)
	release(t, p)
	if s := ended(t, p); s != (Status{Known: true}) {
		t.Fatalf("ended with %v: %s", s, read(t, out))
	}
	got := values(read(t, out), "")
	for name, want := range map[string]string{
		"nice": "-3", "oom": "777", "nnp": "1", "nofile": "200:200", "core": "0:4096", "nproc": "5000:6000", "memlock": "65536:131072",
		"as": fmt.Sprintf("%d:%d", uint64(as), uint64(as)),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestLimitsBelowWhatTheStageNeeds: the address space of a Go program is a
// gigabyte, that of a shell is not; and the soft limit of open files is not
// put back by the stage's runtime.
func TestLimitsBelowWhatTheStageNeeds(t *testing.T) {
	out := output(t)
	p := start(t, Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "ulimit -Sn; ulimit -Hn; ulimit -v"}, Umask: -1, Staged: true, Stdout: out,
		Settings: Settings{Limits: []Limit{{"as", 100 << 20, 100 << 20}, {"nofile", 64, 128}}},
	})
	release(t, p)
	if s := ended(t, p); s != (Status{Known: true}) {
		t.Fatalf("ended with %v: %s", s, read(t, out))
	}
	if got := strings.Fields(read(t, out)); !slices.Equal(got, []string{"64", "128", strconv.Itoa(100 << 10)}) {
		t.Errorf("the shell has the limits %q", got)
	}
}

// TestSettingsNameTheStepThatFailed runs as a user who may not have them.
func TestSettingsNameTheStepThatFailed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to drop it")
	}
	for _, c := range []struct {
		set  Settings
		step string
		err  error
		text string
	}{
		{Settings{OOMScoreAdj: number(4000)}, "oom_score_adj", syscall.EINVAL, "set oom_score_adj to 4000: invalid argument"},
		{Settings{Limits: []Limit{{"nofile", 1, 1 << 40}}}, "limit", syscall.EPERM, "set the limit nofile 1:1099511627776: operation not permitted"},
	} {
		spec := self("settings")
		spec.Settings = c.set
		p := start(t, spec)
		err := p.Release()
		var e *Error
		if !errors.As(err, &e) || e.Step != c.step || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.set, err)
		}
		if s := ended(t, p); s.Code != stage.FailedStatus {
			t.Errorf("the stage ended with %v", s)
		}
	}
}

func TestSettingsNeedTheStage(t *testing.T) {
	spec := self("settings")
	spec.Staged, spec.Settings = false, Settings{NoNewPrivs: true}
	if _, err := Start(spec); err == nil || !strings.Contains(err.Error(), "Stage") {
		t.Errorf("started without a stage: %v", err)
	}
	spec.Staged, spec.Settings = true, Settings{Limits: []Limit{{"nofile", 3, 2}}}
	if _, err := Start(spec); err == nil {
		t.Error("a soft limit above the hard one was taken")
	}
	spec.Settings, spec.Env = Settings{}, []string{"PASSWORD=a\x00b"}
	if _, err := Start(spec); err == nil || !strings.Contains(err.Error(), "PASSWORD") || strings.Contains(err.Error(), "a\\x00b") {
		t.Errorf("a variable with a zero byte: %v", err)
	}
}
