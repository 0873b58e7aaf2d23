package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConfigsInTheDocumentation: what is shown as a config passes check, and
// its plugins, where they are ours, take their tables.
func TestConfigsInTheDocumentation(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "bin", "standbyd-snapshot"), "../../plugins/snapshot")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	block := regexp.MustCompile("(?s)```toml\n(.*?)```")
	for _, doc := range []string{"README.md", "docs/config.md"} {
		text, err := os.ReadFile(filepath.Join("../..", doc))
		if err != nil {
			t.Fatal(err)
		}
		found := block.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s has no config", doc)
		}
		for _, b := range found {
			file := filepath.Join(dir, "standbyd.toml")
			if err := os.WriteFile(file, b[1], 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"check", "-c", file}
			if ours := strings.Contains(string(b[1]), "./bin/standbyd-snapshot"); ours {
				args = append(args, "--plugins")
			}
			if code, _, stderr := call(args...); code != exitDone {
				t.Errorf("%s: exit %d of check on\n%s\n%s", doc, code, b[1], stderr)
			}
			// Without its plugin's program: nothing but the errors.
			if code, stdout, stderr := call("check", "-c", file, "--plugins"); code == exitDone != (len(args) == 4) || code != exitDone && stdout != "" {
				t.Errorf("%s: exit %d of check --plugins\n%s%s", doc, code, stdout, stderr)
			}
		}
	}
}
