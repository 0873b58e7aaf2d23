//go:build linux

package conformance

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// status is the exit status of a verb.
func status(err error) int {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// TestA18_BrokenConfigs: of 24 broken files each is refused by check, by
// reload, by its plan and by SIGHUP, with file, line, column, key, reason and
// what was probably meant; the roles that run do not notice.
func TestA18_BrokenConfigs(t *testing.T) {
	t.Parallel()
	const head = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n" // lines 1 to 3
	const kv = "[role.kv]\ncommand = [$TW]\nworkers = 2\n"                      // lines 4 to 6
	const other = "[role.other]\ncommand = [$TW]\nworkers = 1\n"
	d := newDaemon(t, kv+other)
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	before := d.pids()
	if len(before) != 3 {
		t.Fatalf("the workers are %v", before)
	}
	file := filepath.Base(d.config)
	for _, c := range []struct {
		text string // below head
		at   string // line and column
		key  string
		says []string
	}{
		{kv + other + "grase = 4\n", "10:1", "role.other.grase", []string{"unknown key", `did you mean "grace"`}},
		{"log_levl = \"info\"\n" + kv, "4:1", "supervisor.log_levl", []string{"unknown key", `did you mean "log_level"`}},
		{kv + "[rolle.other]\ncommand = [$TW]\n", "7:1", "rolle", []string{"unknown table", `did you mean "role"`}},
		{kv + "[role.kv.ready]\nhtp = \"http://127.0.0.1/\"\n", "8:1", "role.kv.ready.htp", []string{"unknown key", `did you mean "http"`}},
		{kv + "[[role.kv.plugin]]\nname = \"p\"\ncomand = [\"p\"]\n", "9:1", "role.kv.plugin[0].comand", []string{"unknown key", `did you mean "command"`}},
		{kv + "Burst = 3\n", "7:1", "role.kv.Burst", []string{"unknown key", `did you mean "burst"`}},
		{kv + "preempt = \"stiky\"\n", "7:11", "role.kv.preempt", []string{`"lowest-pid"`, `did you mean "sticky"`}},
		{kv + "stop_signal = \"TREM\"\n", "7:15", "role.kv.stop_signal", []string{"is not one of", `did you mean "TERM"`}},
		{kv + "tick = 100\n", "7:8", "role.kv.tick", []string{"bare number", `"100ms"`}},
		{kv + "tick = \"100\"\n", "7:8", "role.kv.tick", []string{"has no unit", `"100ms"`}},
		{kv + "tick = \"-1s\"\n", "7:8", "role.kv.tick", []string{"-1s"}},
		{kv + "grace = 0\n", "7:9", "role.kv.grace", []string{"out of range", "from 1"}},
		{kv + "log_max_size = \"10MX\"\n", "7:16", "role.kv.log_max_size", []string{"is not a size", `"10MiB"`}},
		{kv + "drain_timeout = \"20s\"\nstop_timeout = \"3s\"\n", "8:16", "role.kv.stop_timeout", []string{"3s", "drain_timeout (20s)"}},
		{kv + "env = { A = 1 }\n", "7:13", "role.kv.env.A", []string{"integer", "quotes"}},
		{kv + "user = \"nobody-of-that-name\"\n", "7:8", "role.kv.user", []string{"no user"}},
		{kv + "[[role.kv.worker]]\nindex = 7\n", "8:9", "role.kv.worker[0].index", []string{"no worker 7", "from 0 to 1"}},
		{kv + "[[role.kv.listen]]\nname = \"http\"\n", "7:1", "role.kv.listen[0]", []string{"no address", "address = "}},
		{kv + "[[role.kv.listen]]\nname = \"http\"\naddress = \"127.0.0.1:99999\"\n", "9:11", "role.kv.listen[0].address", []string{"99999", "65535"}},
		{"[role.kv]\nworkers = 2\n", "4:1", "role.kv", []string{"no command", "command = "}},
		{"[role.kv]\ncommand = \"sleep 1\"\n", "5:11", "role.kv.command", []string{"list of strings", `["sleep", "1"]`}},
		{kv + "[role.kv]\nworkers = 3\n", "7:2", "role.kv", []string{"not valid TOML", "is there already, in line 4"}},
		{kv + "[role.\"k v\"]\ncommand = [$TW]\n", "7:1", `role."k v"`, []string{"letters, digits"}},
		{"", "1:1", "role", []string{"there is no role", "[role.NAME]"}},
	} {
		d.configure(head + c.text)
		want := fmt.Sprintf("%s:%s: %s: ", file, c.at, c.key)
		for _, verb := range [][]string{{"check"}, {"reload", "--plan"}, {"reload"}} {
			out, err := d.run(verb...)
			if status(err) != 2 {
				t.Errorf("%q: %v ended with %d, want 2", c.text, verb, status(err))
			}
			if verb[0] == "reload" && !strings.Contains(out, "nothing was changed") {
				t.Errorf("%q: %v does not say that nothing was changed: %s", c.text, verb, out)
			}
			line := ""
			for l := range strings.Lines(out) {
				if strings.Contains(l, want) {
					line = l
				}
			}
			for _, word := range c.says {
				if !strings.Contains(line, word) {
					t.Errorf("%q: %v does not say %q after %q:\n%s", c.text, verb, word, want, out)
				}
			}
		}
	}
	syscall.Kill(d.main, syscall.SIGHUP)
	eventually.Holds(t, "the log says why SIGHUP changed nothing", func() bool {
		return strings.Contains(d.output.String(), "nothing was changed") && strings.Contains(d.output.String(), "there is no role")
	})
	if strings.Contains(d.output.String(), "the config is as it was") {
		t.Errorf("of a file that it could not use the log says that it is as it was:\n%s", d.output)
	}
	roles := d.roles()
	if after := d.pids(); !maps.Equal(after, before) || roles["kv"].Leader == "" || roles["other"].Leader == "" {
		t.Errorf("workers %v, were %v; %+v", after, before, roles)
	}
	// With such a file nothing is started, and the daemon that runs is not harmed.
	if out, err := exec.Command(standbyd, "-c", d.config, "run").CombinedOutput(); status(err) != 2 || !strings.Contains(string(out), file+":1:1: role: ") {
		t.Errorf("run with a broken file: %v, %s", err, out)
	}
	d.configure(head + kv + other)
	if out := d.must("reload"); !strings.Contains(out, "the config is as it was") || !maps.Equal(d.pids(), before) {
		t.Errorf("the mended file: %s", out)
	}
}
