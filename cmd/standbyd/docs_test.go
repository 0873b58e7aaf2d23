package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/internal/config"
	"github.com/standbyd/standbyd/test/programs"
)

// TestConfigsInTheDocumentation: what is shown as a config passes check, and
// its plugins, where they are ours, take their tables.
func TestConfigsInTheDocumentation(t *testing.T) {
	dir := t.TempDir()
	if err := programs.Build(filepath.Join(dir, "bin", "standbyd-snapshot"), "plugins/snapshot"); err != nil {
		t.Fatal(err)
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
			if bytes.Contains(b[1], []byte("\n[role.")) || bytes.HasPrefix(b[1], []byte("[role.")) {
				os.RemoveAll(filepath.Join(dir, config.PartsFolder))
				if err := os.WriteFile(file, b[1], 0o600); err != nil {
					t.Fatal(err)
				}
			} else { // a part of the one before
				if err := os.MkdirAll(filepath.Join(dir, config.PartsFolder), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, config.PartsFolder, "part.toml"), b[1], 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"check", "-c", file}
			if ours := strings.Contains(string(b[1]), "./bin/standbyd-snapshot"); ours {
				args = append(args, "--plugins")
			}
			if code, _, stderr := call(args...); code != exitDone {
				t.Errorf("%s: exit %d of check on\n%s\n%s", doc, code, b[1], stderr)
			}
			if !strings.Contains(string(b[1]), ".plugin]]") {
				continue
			}
			// Without its plugin's program: nothing but the errors.
			if code, stdout, stderr := call("check", "-c", file, "--plugins"); code == exitDone != (len(args) == 4) || code != exitDone && stdout != "" {
				t.Errorf("%s: exit %d of check --plugins\n%s%s", doc, code, stdout, stderr)
			}
		}
	}
}
