//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// The store's disk is full: reads go on, writes are refused with the reason,
// and go on by themselves once there is space. Nobody loses the leadership,
// and a leader that dies then is replaced by one that does the same.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	d := configure(t, storeConfig(""))
	data := filepath.Join(d.dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a small file system (wants root): %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(data, syscall.MNT_DETACH) }) // runs before d.clean
	d.start()
	before := d.whole("kv")
	c := newClient()
	defer c.CloseIdleConnections()
	ask := func(method, key, body string) (int, string) {
		t.Helper()
		res, b, err := request(context.Background(), c, method, d.url+"/kv/"+key, body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	if code, said := ask("PUT", "kept", "before"); code != http.StatusNoContent {
		t.Fatalf("PUT: %d %s", code, said)
	}
	fill := filepath.Join(data, "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	large := strings.Repeat("x", 200<<10)
	ask("PUT", "lost", large) // the first one may be found out late
	if code, said := ask("PUT", "lost", large); code != http.StatusInsufficientStorage || !strings.Contains(said, "no space") {
		t.Errorf("PUT on a full disk: %d %s", code, said)
	}
	if code, said := ask("GET", "kept", ""); code != http.StatusOK || said != "before" {
		t.Errorf("GET on a full disk: %d %s", code, said)
	}
	kill(t, before.LeaderPID, syscall.SIGKILL)
	before = d.successor("kv", before)
	if code, said := ask("GET", "kept", ""); code != http.StatusOK || said != "before" {
		t.Errorf("GET from the next leader on a full disk: %d %s", code, said)
	}
	if code, said := ask("PUT", "refused", "x"); code != http.StatusInsufficientStorage || !strings.Contains(said, "no space") {
		t.Errorf("PUT to the next leader on a full disk: %d %s", code, said)
	}
	os.Remove(fill)
	// The plugin that copies the folder may hold the file for a moment yet.
	eventually.Shows(d.t, "a write succeeds once there is space", func() (bool, string) {
		code, said := ask("PUT", "after", "1")
		return code == http.StatusNoContent, fmt.Sprintf("%d %s", code, said)
	})
	if after := d.whole("kv"); after.Term != before.Term {
		t.Errorf("the full disk cost the leadership: %+v", after)
	}
	kill(t, before.LeaderPID, syscall.SIGKILL)
	d.successor("kv", before)
	for key, want := range map[string]string{"kept": "before", "after": "1"} {
		if code, said := ask("GET", key, ""); code != http.StatusOK || said != want {
			t.Errorf("the next leader has %s: %d %s", key, code, said)
		}
	}
	if state := d.end(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("standbyd ended with %v", state)
	}
}
