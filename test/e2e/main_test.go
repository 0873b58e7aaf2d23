//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// bin is the folder of the programs under test.
var bin string

// TestMain builds the programs once. The test binary itself also serves as
// the bad workers and bad plugins that the tests configure.
func TestMain(m *testing.M) {
	if part := os.Getenv(playsEnv); part != "" {
		play(part)
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = filepath.Join(dir, "bin")
	for name, pkg := range map[string]string{
		"standbyd":          "./cmd/standbyd",
		"kv":                "./examples/kv",
		"embed":             "./examples/embed",
		"standbyd-snapshot": "./plugins/snapshot",
	} {
		build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(bin, name), pkg)
		build.Dir = "../.."
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	// What the user who runs the tests has set must not reach the programs.
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "STANDBYD_") {
			os.Unsetenv(name)
		}
	}
	// The tests wait most of the time: more of them than processors fit.
	flag.Parse()
	flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	return m.Run()
}

// rounds is n, or ten times as many in a soak.
func rounds(n int) int {
	if os.Getenv("SOAK") != "" {
		return 10 * n
	}
	return n
}
