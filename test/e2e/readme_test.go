//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
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
