//go:build linux

package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/shortdir"
)

const asOther = "STANDBYD_API_TEST_AS_OTHER"

// TestMain lets the test binary be a client of another user.
func TestMain(m *testing.M) {
	path := os.Getenv(asOther)
	if path == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := NewClient(path)
	_, err := c.Status(ctx)
	fmt.Printf("read: forbidden=%v %v\n", errors.Is(err, ErrForbidden), err)
	err = c.Ack(ctx, "kv")
	fmt.Printf("change: forbidden=%v %v\n", errors.Is(err, ErrForbidden), err)
	os.Exit(0)
}

func TestWhoMayAsk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become other users")
	}
	const group, stranger = 64001, 64002
	for _, c := range []struct {
		name   string
		access Access
		mode   os.FileMode // set afterwards, as an operator might; 0: as bound
		gid    uint32
		read   string
		change string
	}{
		{"nobody else by default", Access{}, 0, group, "read: forbidden=false not allowed to use the control socket", "change: forbidden=false not allowed to use"},
		{"an opened socket is no permission", Access{}, 0o666, group, "read: forbidden=true not allowed: uid 64009 may not read", "change: forbidden=true"},
		{"a group may read", Access{Group: "64001", GID: group}, 0, group, "read: forbidden=false <nil>", "change: forbidden=true not allowed: uid 64009 may not change"},
		{"a group may do all", Access{Group: "64001", GID: group, Full: true}, 0, group, "read: forbidden=false <nil>", "change: forbidden=false <nil>"},
		{"another group may not connect", Access{Group: "64001", GID: group, Full: true}, 0, stranger, "read: forbidden=false not allowed to use the control socket", "change: forbidden=false not allowed"},
		{"another group that gets in", Access{Group: "64001", GID: group, Full: true}, 0o666, stranger, "read: forbidden=true", "change: forbidden=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := shortdir.New(t)
			path := filepath.Join(dir, SocketName)
			l, err := Listen(path, c.access)
			if err != nil {
				t.Fatal(err)
			}
			if c.mode != 0 {
				if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(path, c.mode)); err != nil {
					t.Fatal(err)
				}
			}
			stopped := make(chan struct{})
			s := NewServer(&puppet{}, func() {}, stopped)
			s.Access = c.access
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx, l) }()
			defer func() { close(stopped); cancel(); <-served }()

			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), asOther+"="+path)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64009, Gid: c.gid}}
			cmd.WaitDelay = 2 * time.Second
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("the client: %v\n%s", err, out)
			}
			lines := strings.Split(string(out), "\n")
			if len(lines) < 2 || !strings.HasPrefix(lines[0], c.read) || !strings.HasPrefix(lines[1], c.change) {
				t.Errorf("got:\n%swant:\n%s…\n%s…", out, c.read, c.change)
			}
			// The daemon's own user, who is root here, may do everything.
			if err := NewClient(path).Ack(ctx, "kv"); err != nil {
				t.Errorf("the owner: %v", err)
			}
		})
	}
}
