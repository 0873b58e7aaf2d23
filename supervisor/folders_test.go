package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/test/shortdir"
)

// TestFoldersThatOthersMayWriteTo: both are refused alike, with the mode as ls
// shows it; what is above them may be /tmp.
func TestFoldersThatOthersMayWriteTo(t *testing.T) {
	for _, field := range []string{"runtime_dir", "state_dir"} {
		for shown, mode := range map[string]fs.FileMode{
			"drwxrwxrwt": fs.ModeSticky | 0o777, "drwxrwxr-x": 0o775, "drwx----w-": 0o702, "drwxrws---": fs.ModeSetgid | 0o770,
		} {
			c := newConfig(t, "plain")
			dir := map[string]string{"runtime_dir": c.RuntimeDir, "state_dir": c.StateDir}[field]
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			s, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			var setting *ConfigError
			err = s.Run(t.Context())
			if !errors.As(err, &setting) || setting.Field != field || !strings.Contains(err.Error(), shown) || !strings.Contains(err.Error(), "chmod go-w "+dir) {
				t.Errorf("%s with mode %v: %v", field, mode, err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%s with mode %v: left %v", field, mode, left)
			}
		}
	}
	parent := shortdir.New(t)
	if err := os.Chmod(parent, fs.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	if err := prepareFolders(parent+"/run", parent+"/state"); err != nil {
		t.Errorf("below a folder like /tmp: %v", err)
	}
}

// TestStateFolderOfAnotherUser is refused, unless that is root.
func TestStateFolderOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	c := newConfig(t, "plain")
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(c.StateDir, 4711, -1); err != nil {
		t.Fatal(err)
	}
	var setting *ConfigError
	if err := prepareFolders(c.RuntimeDir, c.StateDir); !errors.As(err, &setting) || setting.Field != "state_dir" || !strings.Contains(err.Error(), "belongs to uid 4711") {
		t.Errorf("of another user: %v", err)
	}
}
