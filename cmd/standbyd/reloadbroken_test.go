package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestBrokenFileIsToldOnce: by the daemon that was asked to read it, and by the
// verb itself only if there is none.
func TestBrokenFileIsToldOnce(t *testing.T) {
	d := start(t, "")
	d.must("wait", "kv", "-T", "50s")
	good, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.file, append(good, "\n[role.kv\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	const mistake = "not valid TOML"
	for _, args := range [][]string{{"reload"}, {"reload", "--plan"}, {"reload", "-o", "json"}} {
		if code, _, stderr := d.call(args...); code != exitUsage || strings.Count(stderr, mistake) != 1 || !strings.Contains(stderr, "nothing was changed") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
	d.signals <- syscall.SIGTERM
	d.exit()
	if code, _, stderr := d.call("reload"); code != exitNoDaemon || strings.Count(stderr, mistake) != 1 {
		t.Errorf("without a daemon: exit %d, %s", code, stderr)
	}
}
