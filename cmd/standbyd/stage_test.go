package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/internal/launch/stage"
)

// TestStageIsNotBehindTheWholeProgram: each worker begins as a stage, which is
// this program. It must be at its gate before what makes a start of the whole
// program dear is initialised.
func TestStageIsNotBehindTheWholeProgram(t *testing.T) {
	gate, err := os.Open(os.DevNull) // ends at once, as if the parent had gone
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = stage.Argv(3)
	cmd.Env = append(stage.Env(), "GODEBUG=inittrace=1")
	cmd.ExtraFiles = []*os.File{gate, gate}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the stage ended with %v:\n%s", err, out)
	}
	began := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "init" {
			began[f[1]] = true
		}
	}
	if !began["os"] {
		t.Fatalf("no trace of what was initialised:\n%s", out)
	}
	for _, heavy := range []string{"reflect", "encoding/json", "net/http", "crypto/tls", "google.golang.org/grpc", "github.com/prometheus/client_golang/prometheus"} {
		if began[heavy] {
			t.Errorf("%s was initialised before the stage began", heavy)
		}
	}
}
