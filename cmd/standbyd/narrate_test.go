package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReloadTellsHowItGoes: what differs and what is done to each worker, also
// that a reload takes back what scale has done.
func TestReloadTellsHowItGoes(t *testing.T) {
	d := start(t, "workers = 2\n")
	d.must("wait", "kv", "--for", "ready", "-T", "50s")
	has := func(verb, out string, want ...string) {
		t.Helper()
		for _, w := range want {
			m := regexp.MustCompile(w).FindStringIndex(out)
			if m == nil {
				t.Fatalf("%s: no %q in what is left of its output:\n%s", verb, w, out)
			}
			out = out[m[1]:]
		}
	}
	call := func(args ...string) (string, string) {
		t.Helper()
		code, stdout, stderr := d.call(args...)
		if code != exitDone {
			t.Fatalf("%q: exit %d\n%s%s", args, code, stdout, stderr)
		}
		return stdout, stderr
	}
	stdout, stderr := call("scale", "kv", "3")
	has("scale", stdout, `^kv: done; started, in this order: kv-2\n$`)
	has("scale", stderr, `^  kv: kv-2 \(pid \d+\) started\n`, `  kv: kv-2 \(pid \d+\) is ready\n`)

	const undone = "kv: workers: 3 by scale -> 2 by the file\n"
	if stdout, stderr := call("reload", "--plan"); stdout != undone+"kv: would be stopped: kv-2\n" || stderr != "" {
		t.Errorf("the plan: %q, %q", stdout, stderr)
	}
	if out := d.must("reload", "--plan", "-o", "json"); !strings.Contains(out, `"old":"3","new":"2","cost":"scale","scaled":true`) {
		t.Errorf("the plan: %s", out)
	}
	text, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.file, append(text, []byte("env = { A = \"1\" }\n")...), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr = call("reload")
	has("reload", stdout, `^kv: env: "" -> A\n`, undone, `^kv: done; started, in this order: kv-\d, kv-\d; stopped: kv-2\n$`)
	has("reload", stderr, `is restarted with the present settings\n`, `started\n`, `is ready\n`, `leads, token`, `is restarted with the present settings\n`, `started\n`, `is ready\n`)
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "  kv: ") {
			t.Errorf("a line of another kind: %q", line)
		}
	}

	// Now the number is the file's again.
	if stdout, _ := call("reload"); stdout != "the config is as it was\n" {
		t.Errorf("a second reload: %q", stdout)
	}
	call("scale", "kv", "3")
	call("scale", "kv", "2")
	if stdout, _ := call("reload", "--plan"); stdout != "the config is as it was\n" {
		t.Errorf("scaled there and back: %q", stdout)
	}
	stdout, stderr = call("restart", "kv", "--rolling")
	has("restart", stdout, `^kv: done; started, in this order: kv-\d, kv-\d\n$`)
	has("restart", stderr, `is restarted`, `is ready\n`, `leads, token`, `is ready\n`)
	if _, stderr := call("restart", "kv", "--rolling", "-o", "json"); stderr != "" {
		t.Errorf("with -o json: %q", stderr)
	}
}
