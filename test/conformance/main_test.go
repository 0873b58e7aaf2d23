//go:build linux

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/programs"
	"github.com/standbyd/standbyd/test/shortdir"
)

// standbyd is the program under test.
var standbyd string

// TestMain builds it once. The test binary itself plays the workers, and the
// embedder of a supervisor.
func TestMain(m *testing.M) {
	supervisor.Stage()
	if len(os.Args) > 1 && os.Args[1] == "tw" {
		work(os.Args[2:])
	}
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		plugin(os.Args[2])
	}
	os.Exit(buildAndRun(m))
}

// binEnv names the program for a run of this binary by itself, in a pid
// namespace.
const binEnv = "CONFORMANCE_BIN"

func buildAndRun(m *testing.M) int {
	if standbyd = os.Getenv(binEnv); standbyd != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	standbyd = filepath.Join(dir, "standbyd")
	if err := programs.Build(standbyd, "cmd/standbyd"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return programs.Run(m)
}

// patience is the limit of every wait for an event: what is promised comes
// far sooner, on a machine that does nothing else.
const patience = time.Minute

// daemon is a standbyd with folders of its own.
type daemon struct {
	t      *testing.T
	dir    string
	config string
	output *programs.Output
	cmd    *exec.Cmd
	main   int           // pid of standbyd itself
	gone   chan struct{} // closed at its end
	wait   func() int    // for its end; its exit status; any number of calls
}

// newDaemon writes the config and starts standbyd. In the text, $TW is the
// worker that this binary plays, as the beginning of a command, $PLUGIN its
// plugin, and $DIR the test's folder. before is put in front of the command line.
func newDaemon(t *testing.T, text string, before ...string) *daemon {
	t.Helper()
	d := writeConfig(t, text)
	d.start(before...)
	return d
}

// writeConfig is newDaemon without the start.
func writeConfig(t *testing.T, text string) *daemon {
	t.Helper()
	dir := shortdir.New(t)
	d := &daemon{t: t, dir: dir, config: filepath.Join(dir, "standbyd.toml"), output: &programs.Output{}, gone: make(chan struct{})}
	close(d.gone)
	d.configure(folders + text)
	t.Cleanup(func() {
		d.stop()
		for _, p := range d.running() {
			syscall.Kill(p.PID, syscall.SIGKILL)
			if !t.Failed() {
				t.Errorf("%s (pid %d) is left", p.worker, p.PID)
			}
		}
		if t.Failed() {
			t.Logf("standbyd printed:\n%s", d.output)
			logs, _ := filepath.Glob(filepath.Join(dir, "state/logs/*.log"))
			for _, name := range logs {
				b, _ := os.ReadFile(name)
				t.Logf("%s:\n%s", filepath.Base(name), b[max(0, len(b)-2000):])
			}
		}
	})
	return d
}

// folders is how every config begins.
const folders = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n"

// configure writes the config file anew.
func (d *daemon) configure(text string) {
	d.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	text = strings.NewReplacer("$TW", fmt.Sprintf("%q, \"tw\"", exe), "$PLUGIN", fmt.Sprintf("%q, \"plugin\"", exe), "$DIR", d.dir).Replace(text)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) start(before ...string) {
	d.t.Helper()
	d.launch(append(before, standbyd, "-c", d.config, "run")...)
}

// launch makes the process of this command line the one that is meant from
// here on.
func (d *daemon) launch(argv ...string) {
	d.t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	d.output = &programs.Output{}
	cmd.Stdout, cmd.Stderr = d.output, d.output
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.cmd, d.main = cmd, cmd.Process.Pid
	gone := make(chan struct{})
	d.gone, d.wait = gone, func() int { <-gone; return cmd.ProcessState.ExitCode() }
	go func() { cmd.Wait(); close(gone) }()
}

// kill ends standbyd as nothing should, and waits for its end.
func (d *daemon) kill() {
	syscall.Kill(d.main, syscall.SIGKILL)
	d.wait()
}

// stop ends it in order, and by force if that does not work.
func (d *daemon) stop() {
	select {
	case <-d.gone:
		return
	default:
	}
	syscall.Kill(d.main, syscall.SIGTERM)
	if !d.ended() {
		syscall.Kill(d.main, syscall.SIGKILL)
		d.wait()
		d.t.Error("standbyd did not stop in order")
	}
}

// ended waits for its end.
func (d *daemon) ended() bool {
	select {
	case <-d.gone:
		return true
	case <-time.After(patience):
		return false
	}
}

// run runs a verb and returns what it printed.
func (d *daemon) run(args ...string) (string, error) {
	out, err := exec.Command(standbyd, append([]string{"-c", d.config}, args...)...).CombinedOutput()
	return string(out), err
}

// must is run for a verb that has to succeed.
func (d *daemon) must(args ...string) string {
	d.t.Helper()
	out, err := d.run(args...)
	if err != nil {
		d.t.Fatalf("standbyd %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// identity of a living process.
func identity(t *testing.T, pid int) proc.Identity {
	t.Helper()
	id, err := proc.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
