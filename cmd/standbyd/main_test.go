package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/programs"
	"github.com/standbyd/standbyd/test/shortdir"
)

const patience = 60 * time.Second

// TestMain makes the test binary the stage and the worker of its own daemons.
func TestMain(m *testing.M) {
	supervisor.Stage()
	if os.Getenv("STANDBYD_ROLE") != "" {
		os.Exit(worker())
	}
	if os.Getenv("STANDBYD_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// worker leads until it is told to stop, and says so.
func worker() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := coord.Run(ctx, func(ctx context.Context, l *coord.Leadership) error {
		fmt.Printf("leading as %s\n", l.Token())
		<-ctx.Done()
		return nil
	})
	if err != nil && ctx.Err() == nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// daemon is a `standbyd run` in this process.
type daemon struct {
	t              *testing.T
	dir, file      string
	stdout, stderr programs.Output
	signals        chan os.Signal
	code           chan int
}

// writeConfig writes a config whose workers are this test binary. Extra is
// added below the role; if it has a line "---", what is above that belongs to
// [supervisor].
func writeConfig(t *testing.T, extra string) (dir, file string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = shortdir.New(t)
	file = filepath.Join(dir, "standbyd.toml")
	hint := "true"
	if strings.Contains(extra, `"http"`) {
		hint = "curl http://{http}/"
	}
	settings, below, ok := strings.Cut(extra, "---\n")
	if !ok {
		settings, below = "", extra
	}
	text := fmt.Sprintf("[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n%s\n[role.kv]\ncommand = [%q]\nfailovers = 60\nhints = [%q]\n%s", settings, self, hint, below)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

const listenAnywhere = "[[role.kv.listen]]\nname = \"http\"\naddress = \"127.0.0.1:0\"\n"

func start(t *testing.T, extra string) *daemon {
	t.Helper()
	d := &daemon{t: t, signals: make(chan os.Signal, 4), code: make(chan int, 1)}
	d.dir, d.file = writeConfig(t, extra)
	go func() {
		ctx := withSignals(context.Background(), d.signals)
		d.code <- run(ctx, []string{"standbyd", "run", "-c", d.file}, strings.NewReader(""), &d.stdout, &d.stderr)
	}()
	t.Cleanup(func() {
		select {
		case d.signals <- syscall.SIGTERM:
		default:
		}
		d.exit()
		if t.Failed() {
			t.Logf("daemon's log:\n%s", d.stderr.String())
		}
	})
	return d
}

// exit waits for the daemon's exit code; -1 if it stays.
func (d *daemon) exit() int {
	select {
	case code := <-d.code:
		d.code <- code
		return code
	case <-time.After(patience):
		d.t.Error("the daemon does not end")
		return -1
	}
}

// call runs a verb against the daemon.
func (d *daemon) call(args ...string) (code int, stdout, stderr string) {
	return call(append([]string{"-c", d.file}, args...)...)
}

func call(args ...string) (code int, stdout, stderr string) {
	var out, errs programs.Output
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code = run(ctx, append([]string{"standbyd"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// must is call for verbs that have to succeed.
func (d *daemon) must(args ...string) string {
	d.t.Helper()
	code, stdout, stderr := d.call(args...)
	if code != exitDone {
		d.t.Fatalf("standbyd %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// takenPort is an address that somebody else listens on.
func takenPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
