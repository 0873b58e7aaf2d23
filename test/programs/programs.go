// Package programs builds the programs of this module for tests that run them,
// and runs such tests.
package programs

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/standbyd/standbyd"

// Build compiles the package in a folder of this module, as a release is: the
// program is file.
func Build(file, folder string) error {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", file, path.Join(module, folder))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return nil
}

// Run runs a package's tests where they start programs. What the user who runs
// them has set for standbyd does not reach those; and as the tests wait most of
// the time, twice as many run at once as there are processors.
func Run(m *testing.M) int {
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "STANDBYD_") {
			os.Unsetenv(name)
		}
	}
	flag.Parse()
	flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	return m.Run()
}

// Output is what a program has printed so far. The zero value is ready; it is
// safe for concurrent use.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes what the program prints.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
