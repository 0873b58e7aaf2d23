package layering

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestDependenciesAreDocumented compares docs/dependencies.md with what is
// linked on Linux: every module with its version, and none that is gone.
func TestDependenciesAreDocumented(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to ask for modules")
	}
	raw, err := os.ReadFile(root + "/docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v[^ ]+) \\|").FindAllStringSubmatch(string(raw), -1) {
		documented[m[1]+" "+m[2]] = true
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	linked := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		if line = strings.TrimSpace(line); line != "" && line != module && !linked[line] {
			linked[line] = true
			if !documented[line] {
				t.Errorf("%s is linked and not in docs/dependencies.md", line)
			}
		}
	}
	for line := range documented {
		if !linked[line] {
			t.Errorf("%s is in docs/dependencies.md and not linked", line)
		}
	}
}
