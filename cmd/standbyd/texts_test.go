package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestVersionFlag: it is what people try first.
func TestVersionFlag(t *testing.T) {
	flag, err := program("--version").Output()
	verb, verr := program("version").Output()
	if err != nil || verr != nil || string(flag) != string(verb) {
		t.Errorf("%q, %v; the verb says %q, %v", flag, err, verb, verr)
	}
}

// TestInspectOfWhatIsNoSegment says what it is, and where segments are.
func TestInspectOfWhatIsNoSegment(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "README.md")
	if err := os.WriteFile(file, bytes.Repeat([]byte("text "), 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:  "inspect " + dir + ": it is a folder; segments are RUNTIME_DIR/roles/ROLE/segment.GENERATION",
		file: "inspect " + file + ": not a standbyd segment; segments are RUNTIME_DIR/roles/ROLE/segment.GENERATION",
	} {
		if out, err := program("inspect", path).CombinedOutput(); err == nil || string(out) != "standbyd: "+want+"\n" {
			t.Errorf("%s, %v", out, err)
		}
	}
}
