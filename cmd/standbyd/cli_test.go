package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

func TestWithoutADaemon(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("STANDBYD_SOCKET", filepath.Join(dir, "no.sock"))
	if err := os.WriteFile("broken.toml", []byte("[role.kv]\nwokers = 3\ntick = 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("syntax.toml", []byte("[role.kv\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string // in stderr; "" is: nothing is written there
	}{
		{"", exitDone, ""},
		{"--help", exitDone, ""},
		{"help run", exitDone, ""},
		{"version", exitDone, ""},
		{"completion bash", exitDone, ""},
		{"completion zsh --no-descriptions", exitDone, ""},
		{"completion fish", exitDone, ""},
		{"completion powershell", exitDone, ""},
		{"completion", exitUsage, "SHELL is missing"},
		{"completion foo", exitUsage, "completion foo: there are bash, zsh, fish, powershell"},
		{"completion bash extra", exitUsage, "\"extra\" is one argument too many"},
		{"help", exitDone, ""},
		{"help frobnicate", exitUsage, `there is no verb "frobnicate"`},
		{"help run twice", exitUsage, "\"twice\" is one argument too many"},
		{"locks --root nowhere", exitFailed, "use --root nowhere: there is no such folder"},
		{"locks --root broken.toml", exitFailed, "it is no folder"},
		{"lock --root nowhere k -- true", exitOwnFailure, "mkdir -p -m 700 nowhere"},
		{"stop kv/0 -T -1s", exitUsage, "-T -1s: at least 1ms, or 0 for no limit"},
		{"start kv/0 -T 500us", exitUsage, "-T 500µs: at least 1ms"},
		{"wait kv -T -1s", exitUsage, "-T -1s: at least 1ms"},
		{"history -n -1", exitUsage, "-n -1: a number of lines is 0 (all) or more"},
		{"events -n -1", exitUsage, "-n -1: a number of lines is 0 (all; with -f, 0: only what comes) or more"},
		{"stauts", exitUsage, "did you mean start or status?"},
		{"frobnicate", exitUsage, `there is no verb "frobnicate"`},
		{"status --nope", exitUsage, "unknown flag: --nope"},
		{"status a b", exitUsage, `"b" is one argument too many`},
		{"pid", exitUsage, "TARGET is missing"},
		{"signal kv/0", exitUsage, "SIGNAL is missing"},
		{"signal kv/0 NOPE", exitUsage, "standbyd: there is no signal \"NOPE\""},
		{"scale kv 0", exitUsage, "at least 1; `standbyd stop kv`"},
		{"scale kv -1", exitUsage, "-1 is no number of workers: at least 1; `standbyd stop ROLE` stops"},
		{"scale kv -n", exitUsage, "unknown shorthand flag: 'n' in -n"},
		{"scale kv two", exitUsage, "\"two\" is no number of workers: a whole number"},
		{"drill kv --max-ms x", exitUsage, "\"x\" for \"--max-ms\" flag: a number is needed, such as 5 or 2.5\n"},
		{"drill kv --count 1.5", exitUsage, "\"--count\" flag: a whole number is needed"},
		{"drill kv --count 99999999999999999999", exitUsage, "\"--count\" flag: the number is too large"},
		{"drill kv --interval 5", exitUsage, "\"--interval\" flag: a time with a unit is needed"},
		{"lock k --ttl 5 -- true", exitOwnFailure, "\"--ttl\" flag: a time with a unit is needed"},
		{"wait kv --for ever", exitUsage, "leader and ready"},
		{"logs kv -n -1", exitUsage, "-n -1"},
		{"drill kv --count 0", exitUsage, "at least 1"},
		{"switchover", exitUsage, "ROLE is missing"},
		{"switchover kv kv-1", exitUsage, "one argument too many"},
		{"failover kv --dry-run", exitUsage, "unknown flag: --dry-run"},
		{"pause kv --for 0s", exitUsage, "at least 1ms"},
		{"pause kv --for -1s", exitUsage, "at least 1ms"},
		{"resume a b", exitUsage, "one argument too many"},
		{"switchover kv", exitNoDaemon, "no.sock"},
		{"switchover kv --dry-run", exitNoDaemon, "no.sock"},
		{"failover kv --to kv-1", exitNoDaemon, "no.sock"},
		{"pause", exitNoDaemon, "no.sock"},
		{"resume kv", exitNoDaemon, "no.sock"},
		{"status", exitNoDaemon, "no.sock"},
		{"--socket other.sock status", exitNoDaemon, "other.sock"},
		{"history", exitNoDaemon, "no.sock"},
		{"events -f", exitNoDaemon, "no.sock"},
		{"shutdown", exitNoDaemon, "no.sock"},
		{"wait kv -T 60ms", exitTimedOut, "no.sock"},
		{"run -c broken.toml", exitUsage, "broken.toml:2:1: role.kv.wokers: unknown key; did you mean \"workers\"?\nbroken.toml:3:8: "},
		{"check -c broken.toml", exitUsage, "broken.toml:1:1: role.kv: has no command"},
		{"check -c syntax.toml", exitUsage, "syntax.toml:1:"},
		{"status -c syntax.toml", exitNoDaemon, "syntax.toml:1:"},
		{"status -c none.toml", exitUsage, "none.toml: no such file or directory"},
		{"run -c none.toml", exitUsage, "none.toml: no such file or directory"},
		{"run -c .", exitUsage, "it is a folder"},
		{"check", exitUsage, "standbyd.toml"},
	} {
		code, stdout, stderr := call(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.want) || (c.want == "") != (stderr == "") {
			t.Errorf("standbyd %s: exit %d, want %d and %q in:\n%s", c.args, code, c.code, c.want, stderr)
		}
		if code != exitDone && stdout != "" {
			t.Errorf("standbyd %s failed and wrote to stdout: %s", c.args, stdout)
		}
	}
}

func TestCheckJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.toml", []byte("[role.kv]\ncommand = [\"./missing\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("b.toml", []byte("[role.kv]\nworkers = 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type result struct {
		OK               bool
		Errors, Warnings []struct {
			File      string
			Line, Col int
			Key, Msg  string
		}
	}
	for _, c := range []struct {
		file             string
		code             int
		errors, warnings int
	}{{"a.toml", exitDone, 0, 1}, {"b.toml", exitUsage, 2, 0}, {"c.toml", exitUsage, 1, 0}} {
		code, stdout, _ := call("check", "-c", c.file, "-o", "json")
		var r result
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%v in %q", err, stdout)
		}
		if code != c.code || r.OK != (c.code == exitDone) || len(r.Errors) != c.errors || len(r.Warnings) != c.warnings {
			t.Errorf("check %s: exit %d, %s", c.file, code, stdout)
		}
	}
}

// stuck is a reader of the log that never reads.
type stuck struct{ block chan struct{} }

func (s stuck) Write(p []byte) (int, error) { <-s.block; return len(p), nil }

func TestUnreadLogBlocksNobody(t *testing.T) {
	s := stuck{make(chan struct{})}
	l := newLogWriter(s)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for range 3 * logQueue {
			l.Write([]byte("line\n"))
		}
	}()
	select {
	case <-wrote:
	case <-time.After(patience):
		t.Fatal("a writer of the log is blocked")
	}
	close(s.block)
	l.Close()
}

func TestLogTellsWhatItDropped(t *testing.T) {
	var got bytes.Buffer
	gate := make(chan struct{})
	l := newLogWriter(writerFunc(func(p []byte) (int, error) { <-gate; return got.Write(p) }))
	for range logQueue + 100 {
		l.Write([]byte("x\n"))
	}
	close(gate)
	eventually.Holds(t, "the queue has room", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.queue) == 0 })
	l.Write([]byte("last\n"))
	l.Close()
	if !strings.Contains(got.String(), "lines of the log dropped") || !strings.HasSuffix(got.String(), "last\n") {
		t.Errorf("the log ends in %q", got.String()[max(0, got.Len()-100):])
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"./bin/standbyd": "./bin/standbyd", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'"} {
		if got := shellQuote(in); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}
