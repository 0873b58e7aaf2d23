// Package shortdir gives tests folders for sockets. The path of a Unix socket
// has room for about a hundred bytes, and testing's TempDir puts the name of the
// test into its own.
package shortdir

import (
	"os"
	"testing"
)

// New makes a folder with a short path. It is removed when the test is over,
// after whatever the test has set up in it since; if the test failed and KEEP
// is in the environment, it stays, and the test's log names it.
func New(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("KEEP") != "" {
			t.Logf("kept %s", dir)
			return
		}
		os.RemoveAll(dir)
	})
	return dir
}
