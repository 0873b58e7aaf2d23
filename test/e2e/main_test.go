//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/standbyd/standbyd/test/programs"
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
	for name, folder := range map[string]string{
		"standbyd":          "cmd/standbyd",
		"kv":                "examples/kv",
		"embed":             "examples/embed",
		"standbyd-snapshot": "plugins/snapshot",
	} {
		if err := programs.Build(filepath.Join(bin, name), folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return programs.Run(m)
}

// rounds is n, or ten times as many in a soak.
func rounds(n int) int {
	if os.Getenv("SOAK") != "" {
		return 10 * n
	}
	return n
}
