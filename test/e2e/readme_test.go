//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// Every program in the README is one that builds.
func TestReadmePrograms(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(text, -1)
	if len(programs) < 3 {
		t.Fatalf("the README has %d programs", len(programs))
	}
	// An overlay puts them into the module without touching it.
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	build := []string{"build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "bin") + "/"}
	for i, p := range programs {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(file, p[1], 0o644); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("readme%d", i)
		overlay["Replace"][filepath.Join(root, name, "main.go")] = file
		build = append(build, "./"+name)
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", build...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// unreachable is what go says of modules, their list of requirements or their
// checksums, that it does not have and cannot get.
var unreachable = regexp.MustCompile(`dial tcp|no such host|i/o timeout|lookup disabled by GOPROXY`)

// TestReadmeFromAnEmptyFolder does what the README says about a worker and a
// plugin, word by word, in an empty folder beside the clone.
func TestReadmeFromAnEmptyFolder(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := shortdir.New(t)
	hello := filepath.Join(dir, "hello")
	d := &daemon{t: t, dir: hello, conf: filepath.Join(hello, "standbyd.toml"), sock: filepath.Join(hello, "data/run", api.SocketName)}
	t.Cleanup(d.clean)
	if err := os.Symlink(root, filepath.Join(dir, "standbyd")); err != nil {
		t.Fatal(err)
	}
	_, worker, _ := strings.Cut(string(text), "\n## A worker\n")
	worker, plugin, _ := strings.Cut(worker, "\n## A plugin\n")
	plugin, _, _ = strings.Cut(plugin, "\n## ")
	write := func(name, kind, section string) {
		t.Helper()
		m := regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindStringSubmatch(section)
		if m == nil || !strings.Contains(section, "`"+name+"`") {
			t.Fatalf("the section does not say that a block of %s is %s:\n%s", kind, name, section)
		}
		file := filepath.Join(hello, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(m[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commands := func(section string) (ours []string) {
		t.Helper()
		for _, m := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(section, -1) {
			if rest, ok := strings.CutPrefix(m[1], "../standbyd/bin/standbyd "); ok {
				ours = append(ours, rest)
				continue
			}
			cmd := exec.Command("sh", "-c", m[1])
			cmd.Dir, cmd.Env = hello, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
			out, err := cmd.CombinedOutput()
			if err != nil && unreachable.Match(out) && os.Getenv("CI") == "" {
				t.Skipf("%s needs the network, or what it has loaded before:\n%s", m[1], out)
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", m[1], err, out)
			}
		}
		return ours
	}
	write("main.go", "go", worker)
	write("standbyd.toml", "toml", worker)
	if ours := commands(worker); len(ours) != 1 || ours[0] != "run" {
		t.Fatalf("the section about a worker runs standbyd %q", ours)
	}
	d.start()
	r := d.whole("hello")
	eventually.Shows(d.t, "the leader says so", func() (bool, string) {
		out := d.run("logs", "hello")
		return strings.Contains(out, r.Leader) && strings.Contains(out, "leading with token"), out
	})
	write("duty/main.go", "go", plugin)
	write("config.d/duty.toml", "toml", plugin)
	if ours := commands(plugin); len(ours) != 1 || ours[0] != "reload" {
		t.Fatalf("the section about a plugin runs standbyd %q", ours)
	}
	d.run("reload")
	eventually.Shows(d.t, "the duty runs", func() (bool, string) {
		out := d.run("logs", "hello/plugins")
		return strings.Contains(out, r.Leader+" leads with token"), out
	})
	if after := d.role("hello"); after.LeaderPID != r.LeaderPID {
		t.Errorf("the new plugin has cost the leader: was %+v, is %+v", r, after)
	}
	d.run("drill", "hello")
	if state := d.end(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("standbyd ended with %v", state)
	}
}
