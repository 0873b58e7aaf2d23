//go:build unix

package sockpath

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/test/shortdir"
)

// bind makes a socket whose path stays when it is closed.
func bind(t *testing.T, network, path string) (end func()) {
	t.Helper()
	if network == "unixgram" {
		c, err := net.ListenUnixgram(network, &net.UnixAddr{Name: path, Net: network})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return func() { c.Close() }
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	return func() { l.Close() }
}

func TestClear(t *testing.T) {
	for _, network := range []string{"unix", "unixgram"} {
		path := filepath.Join(shortdir.New(t), "s")
		if err := Clear(path); err != nil {
			t.Errorf("%s: nothing there: %v", network, err)
		}
		end := bind(t, network, path)
		if err := Clear(path); !errors.Is(err, ErrLive) {
			t.Errorf("%s: a live one: %v", network, err)
		}
		end()
		if err := Clear(path); err != nil {
			t.Errorf("%s: a dead one: %v", network, err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s: the dead one is still there: %v", network, err)
		}
	}
}

func TestClearLeavesOtherFiles(t *testing.T) {
	path := filepath.Join(shortdir.New(t), "s")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Clear(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestOwn(t *testing.T) {
	var none Own
	if none.Lost() || none.Remove() != nil {
		t.Error("no path can be lost, or not be removed")
	}
	path := filepath.Join(shortdir.New(t), "s")
	bind(t, "unix", path)
	own, err := Keep(path)
	if err != nil || own.Lost() {
		t.Fatalf("%v, lost %v", err, own.Lost())
	}
	os.Rename(path, path+".away")
	if !own.Lost() {
		t.Error("a path that was moved away is not lost")
	}
	bind(t, "unix", path)
	if !own.Lost() {
		t.Error("a path that was replaced is not lost")
	}
	if err := own.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("somebody else's socket was removed: %v", err)
	}
	os.Rename(path+".away", path)
	if own.Lost() {
		t.Error("our own is lost")
	}
	if err := own.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("our own is still there: %v", err)
	}
}

func TestCheck(t *testing.T) {
	if err := Check(strings.Repeat("x", Max)); err != nil {
		t.Error(err)
	}
	if Check(strings.Repeat("x", Max+1)) == nil {
		t.Error("a path that is too long fits")
	}
}
