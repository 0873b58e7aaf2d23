//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
	"github.com/standbyd/standbyd/test/verify"
)

// patience bounds every wait. It says nothing about how fast the product is.
const patience = 60 * time.Second

// daemon is one config, and the standbyd that runs it at the moment.
type daemon struct {
	t    *testing.T
	dir  string // holds everything that it writes
	conf string
	sock string // the control socket
	url  string // of the socket that role kv listens on, if it has one

	prepare func(*exec.Cmd) // changes how standbyd is started

	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

// configure writes the config. In text, @DIR is the test's own folder, @BIN
// that of the programs, @SELF this test binary.
func configure(t *testing.T, text string) *daemon {
	t.Helper()
	dir := shortdir.New(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, dir: dir, conf: filepath.Join(dir, "standbyd.toml"), sock: filepath.Join(dir, "run", api.SocketName)}
	text = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n" + text
	text = strings.NewReplacer("@DIR", dir, "@BIN", bin, "@SELF", self).Replace(text)
	if err := os.WriteFile(d.conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.clean)
	return d
}

// clean ends whatever the test left, and shows what happened if it failed.
func (d *daemon) clean() {
	if d.t.Failed() {
		d.show()
	}
	if d.cmd != nil {
		d.cmd.Process.Kill()
		<-d.exited
	}
	for _, p := range d.processes() {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

func (d *daemon) show() {
	files, _ := filepath.Glob(filepath.Join(d.dir, "state/logs/*.log"))
	for _, f := range append([]string{filepath.Join(d.dir, "daemon.log"), filepath.Join(d.dir, "state/history.jsonl")}, files...) {
		b, _ := os.ReadFile(f)
		if len(b) > 8000 {
			b = append([]byte("...\n"), b[len(b)-8000:]...)
		}
		d.t.Logf("%s:\n%s", f, b)
	}
	if d.cmd != nil && d.alive() {
		out, _ := d.try("status", "-o", "json")
		d.t.Logf("status: %s", out)
		out, _ = d.try("events", "-o", "json")
		if len(out) > 8000 {
			out = "..." + out[len(out)-8000:]
		}
		d.t.Logf("events: %s", out)
	}
}

// start runs standbyd and waits until it answers.
func (d *daemon) start() {
	d.t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(filepath.Join(bin, "standbyd"), "run", "-c", d.conf)
	d.cmd.Dir = d.dir
	d.cmd.Stdout, d.cmd.Stderr = log, log
	// A test that is killed takes its daemon along; the workers follow it.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if d.prepare != nil {
		d.prepare(d.cmd)
	}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	exited, cmd := make(chan struct{}), d.cmd
	d.exited = exited
	go func() { cmd.Wait(); close(exited) }()
	eventually.Shows(d.t, "standbyd answers", func() (bool, string) {
		select {
		case <-exited:
			d.t.Fatalf("standbyd ended: %v", cmd.ProcessState)
		default:
		}
		err := d.get("status", nil)
		return err == nil, fmt.Sprint(err)
	})
}

// get asks standbyd itself: a program that is started for every look at what
// is waited for takes more of the machine than what is tested.
func (d *daemon) get(what string, v any) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.sock)
	}
	c := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: patience}
	res, err := c.Get("http://standbyd/v1/" + what)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", what, res.Status, b)
	}
	if err == nil && v != nil {
		err = json.Unmarshal(b, v)
	}
	return err
}

func (d *daemon) alive() bool {
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// end sends a signal to standbyd and returns how it ended.
func (d *daemon) end(sig syscall.Signal) *os.ProcessState {
	d.t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-d.exited:
	case <-time.After(patience):
		d.t.Fatalf("standbyd is still there %s after signal %s", patience, sig)
	}
	return d.cmd.ProcessState
}

// try runs one command of the command line and returns all of its output.
func (d *daemon) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "standbyd"), append([]string{"-c", d.conf}, args...)...)
	cmd.Dir = d.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out) + stderr.String(), fmt.Errorf("standbyd %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// run is try for a command that must succeed.
func (d *daemon) run(args ...string) string {
	d.t.Helper()
	out, err := d.try(args...)
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// The shapes of what the command line prints, as far as the tests look.
type (
	snapshot struct {
		Supervisor struct {
			PID int `json:"pid"`
		} `json:"supervisor"`
		Roles []roleStatus `json:"roles"`
	}
	roleStatus struct {
		Name      string         `json:"name"`
		State     string         `json:"state"`
		Why       string         `json:"why"`
		Segment   string         `json:"segment"`
		Leader    string         `json:"leader"`
		LeaderPID int            `json:"leader_pid"`
		Term      uint64         `json:"term"`
		Token     uint64         `json:"token,string"`
		Workers   []workerStatus `json:"workers"`
		Plugins   []pluginStatus `json:"plugins"`
		Listen    []struct {
			Name    string `json:"name"`
			Network string `json:"network"`
			Address string `json:"address"`
		} `json:"listen"`
		LastFailover *record `json:"last_failover"`
	}
	workerStatus struct {
		Name     string `json:"name"`
		PID      int    `json:"pid"`
		State    string `json:"state"`
		Ready    bool   `json:"ready"`
		Restarts int    `json:"restarts"`
		Why      string `json:"why"`
		LastExit *struct {
			Code   *int   `json:"code"`
			Signal string `json:"signal"`
			Error  string `json:"error"`
		} `json:"last_exit"`
	}
	pluginStatus struct {
		Name      string `json:"name"`
		State     string `json:"state"`
		PID       int    `json:"pid"`
		Token     uint64 `json:"token,string"`
		LastError string `json:"last_error"`
	}
	record struct {
		Role       string    `json:"role"`
		At         time.Time `json:"at"`
		Reason     string    `json:"reason"`
		Term       uint64    `json:"term"`
		Token      uint64    `json:"token,string"`
		From       string    `json:"from"`
		FromPID    int       `json:"from_pid"`
		To         string    `json:"to"`
		ToPID      int       `json:"to_pid"`
		DetectedUS *float64  `json:"detected_us"`
		ClaimedUS  *float64  `json:"claimed_us"`
		ActiveUS   *float64  `json:"active_us"`
		HooksUS    *float64  `json:"hooks_us"`
	}
)

func (d *daemon) status() snapshot {
	d.t.Helper()
	var s snapshot
	if d.get("status", &s) == nil {
		return s
	}
	out := d.run("status", "-o", "json") // also without a standbyd
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		d.t.Fatalf("status: %v: %s", err, out)
	}
	return s
}

// role returns the state of one role.
func (d *daemon) role(name string) roleStatus {
	d.t.Helper()
	s := d.status()
	for _, r := range s.Roles {
		if r.Name == name {
			return r
		}
	}
	d.t.Fatalf("status has no role %s: %+v", name, s)
	panic("unreachable")
}

func lines[T any](d *daemon, args ...string) []T {
	d.t.Helper()
	var all []T
	out := bufio.NewScanner(strings.NewReader(d.run(args...)))
	out.Buffer(nil, 1<<20)
	for out.Scan() {
		var one T
		if err := json.Unmarshal(out.Bytes(), &one); err != nil {
			d.t.Fatalf("%v: %v: %s", args, err, out.Bytes())
		}
		all = append(all, one)
	}
	return all
}

func (d *daemon) history(role string) []record {
	d.t.Helper()
	var all []record
	if d.get("history?role="+role, &all) == nil {
		return all
	}
	return lines[record](d, "history", role, "-o", "json")
}

// whole waits until the role has a leader and everybody else stands by.
func (d *daemon) whole(name string) roleStatus {
	d.t.Helper()
	var r roleStatus
	eventually.Shows(d.t, "role "+name+" is led and every other worker stands by", func() (bool, string) {
		r = d.role(name)
		ok := r.State == "led" && r.LeaderPID != 0
		for _, w := range r.Workers {
			ok = ok && w.PID != 0 && w.Ready && (w.State == "standby" || w.State == "leader" && w.Name == r.Leader && w.PID == r.LeaderPID)
		}
		return ok, fmt.Sprintf("%+v", r)
	})
	for _, l := range r.Listen {
		d.url = "http://" + l.Address
	}
	return r
}

func (r roleStatus) pids() []int {
	var all []int
	for _, w := range r.Workers {
		all = append(all, w.PID)
	}
	slices.Sort(all)
	return all
}

// record waits for the history's record of one term.
func (d *daemon) record(name string, term uint64) record {
	d.t.Helper()
	var found record
	eventually.Shows(d.t, fmt.Sprintf("history of %s has term %d", name, term), func() (bool, string) {
		all := d.history(name)
		for _, r := range all {
			if r.Term == term {
				found = r
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d records", len(all))
	})
	return found
}

// verify checks what must hold of every history whatever happened in it.
func (d *daemon) verify(name string) {
	d.t.Helper()
	tokens, err := verify.Records(name, strings.NewReader(d.run("history", name, "-o", "json")))
	if err != nil {
		d.t.Errorf("history of %s: %v", name, err)
	}
	for _, v := range verify.Tokens(tokens) {
		d.t.Errorf("history of %s: %v", name, v)
	}
	h, err := verify.Events(name, strings.NewReader(d.run("events", "-o", "json")))
	if err != nil {
		d.t.Errorf("events of %s: %v", name, err)
	}
	for _, v := range h.Check() {
		d.t.Errorf("events of %s: %v", name, v)
	}
	r := d.role(name)
	leads := map[uint64]verify.Entry{}
	remember(d.t, r.Segment, leads)
	if len(leads) == 0 {
		d.t.Errorf("the segment of %s knows no leader", name)
	}
	for _, v := range verify.Ring(r.Token>>42, slices.Collect(maps.Values(leads))).Check() {
		d.t.Errorf("the segment of %s: %v", name, v)
	}
}
