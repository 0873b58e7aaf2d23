//go:build linux

package supervisor

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	workers["confined"] = func() int {
		status, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "NoNewPrivs:") || strings.HasPrefix(line, "Umask:") {
				note("%s", strings.Join(strings.Fields(line), " "))
			}
		}
		limits, _ := os.ReadFile("/proc/self/limits")
		for line := range strings.Lines(string(limits)) {
			if f := strings.Fields(line); strings.HasPrefix(line, "Max core file size") {
				note("core %s:%s", f[4], f[5])
			}
		}
		note("passed %s %s %q", os.Getenv("TEST_PASSED"), os.Getenv("TEST_PASSED_TOO"), os.Getenv("TEST_KEPT"))
		return work()
	}
}

func number(n int) *int { return &n }

func TestWorkersAreConfined(t *testing.T) {
	t.Setenv("TEST_PASSED", "one")
	t.Setenv("TEST_PASSED_TOO", "two")
	t.Setenv("TEST_KEPT", "three")
	c := newConfig(t, "confined")
	c.Roles[0].Workers = 1
	c.Roles[0].PassEnv = []string{"TEST_PASSED*", "TEST_NOT_THERE"}
	c.Roles[0].Confine = Confinement{Umask: number(0o31), NoNewPrivs: true, Core: &Limit{0, 8192}}
	w := start(t, c)
	w.until("it leads", full)
	text := strings.Join(w.leads(), "\n")
	for _, want := range []string{"Umask: 0031", "NoNewPrivs: 1", "core 0:8192", `passed one two ""`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// TestTheStepThatFailedIsShown: a limit that the system refuses keeps the
// worker from running, and status says which.
func TestTheStepThatFailedIsShown(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Confine.NoFile = &Limit{1 << 40, 1 << 40} // above the system's own nr_open
	w := start(t, c)
	r := w.until("the start has failed", func(r RoleStatus) bool { return r.Workers[0].LastExit != nil })
	if e := r.Workers[0].LastExit; !strings.Contains(e.Error, "set the limit nofile 1099511627776:1099511627776") {
		t.Errorf("last exit: %+v", e)
	}
}

// TestSettingsWithoutTheStage: New names each setting that only the launch
// stage can make, in a program that did not call Stage.
func TestSettingsWithoutTheStage(t *testing.T) {
	exe, _ := os.Executable()
	for field, set := range map[string]func(*RoleConfig){
		"umask":         func(r *RoleConfig) { r.Confine.Umask = number(0o22) },
		"nice":          func(r *RoleConfig) { r.Confine.Nice = number(1) },
		"oom_score_adj": func(r *RoleConfig) { r.Confine.OOMScoreAdj = number(1) },
		"no_new_privs":  func(r *RoleConfig) { r.Confine.NoNewPrivs = true },
		"limit_core":    func(r *RoleConfig) { r.Confine.Core = &Limit{} },
		"memory_max":    func(r *RoleConfig) { r.Confine.MemoryMax = 1 << 30 },
		"fence":         func(r *RoleConfig) { r.Fence = FenceTree },
	} {
		c := newConfig(t, "good")
		set(&c.Roles[0])
		b, err := json.Marshal(told{c.RuntimeDir, c.StateDir, c.Roles, c.Env, c.Cgroups})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "told.json")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), playUnstaged+"="+path)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), field) || !strings.Contains(string(out), "call supervisor.Stage") {
			t.Errorf("%s: %v: %s", field, err, out)
		}
	}
}

func TestConfinementIsValidated(t *testing.T) {
	for field, set := range map[string]func(*RoleConfig){
		"umask":         func(r *RoleConfig) { r.Confine.Umask = number(0o1000) },
		"nice":          func(r *RoleConfig) { r.Confine.Nice = number(20) },
		"oom_score_adj": func(r *RoleConfig) { r.Confine.OOMScoreAdj = number(-1001) },
		"limit_as":      func(r *RoleConfig) { r.Confine.AS = &Limit{2, 1} },
		"cpu_max":       func(r *RoleConfig) { r.Confine.CPUMax = -1 },
		"pass_env":      func(r *RoleConfig) { r.PassEnv = []string{"LISTEN_FDS"} },
	} {
		r := DefaultRole()
		r.Name, r.Command = "kv", []string{"/bin/true"}
		set(&r)
		var bad *ConfigError
		if err := r.Validate(); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
