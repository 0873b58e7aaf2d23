//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/plugins"
)

// playsEnv names the part that the test binary plays instead of testing.
const playsEnv = "E2E_PLAYS"

// parts are programs that nobody would want, and one or two that are only small.
var parts = map[string]func(){
	// Workers.
	"worker-exits": func() {
		fmt.Println("cannot find my settings")
		os.Exit(3)
	},
	"worker-never-ready": func() {
		m, err := coord.Join(context.Background())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		defer m.Close()
		select {}
	},
	"worker-idle": func() { // leads, and does nothing
		fmt.Println(coord.Run(context.Background(), nil))
		os.Exit(1)
	},
	"worker-wedges": func() { // makes progress for a while, then waits for ever
		fmt.Println(coord.Run(context.Background(), func(ctx context.Context, l *coord.Leadership) error {
			for range 20 {
				l.Member().Pulse()
				time.Sleep(20 * time.Millisecond)
			}
			fmt.Println("wedged")
			select {}
		}))
		os.Exit(1)
	},
	"worker-sockets": serveSockets,

	// What starts standbyd.
	"socket-activation": activate,

	// Plugins.
	"plugin-junk": func() {
		// Past what plugins does to os.Stdout, as a C program would.
		fmt.Fprintln(os.Stderr, "junk on stderr")
		os.NewFile(1, "stdout").WriteString("Welcome to my plugin!\n")
		time.Sleep(time.Hour)
	},
	"plugin-exits": func() { os.Exit(7) },
	"plugin-crashes": func() {
		plugins.Serve(promoter(func(context.Context, plugins.Transition) error {
			panic("crashed on purpose")
		}))
	},
	"plugin-hangs": func() {
		plugins.Serve(promoter(func(context.Context, plugins.Transition) error {
			select {}
		}))
	},
	"plugin-fails": func() {
		plugins.Serve(promoter(func(context.Context, plugins.Transition) error {
			return errors.New("the other side says no")
		}))
	},
	"plugin-message": func() {
		fmt.Fprintln(os.Stderr, `{"@message": 5}`)
		fmt.Fprintln(os.Stderr, `{"@level": [], "@timestamp": {}}`)
		plugins.Serve(promoter(func(context.Context, plugins.Transition) error {
			fmt.Fprintln(os.Stderr, `{"@message": 5}`)
			return nil
		}))
	},
	"plugin-vetoes": func() { plugins.Serve(veto("idle-0")) },
	"plugin-good": func() {
		plugins.Serve(promoter(func(context.Context, plugins.Transition) error { return nil }))
	},
}

type promoter func(context.Context, plugins.Transition) error

func (p promoter) OnPromote(ctx context.Context, t plugins.Transition) error { return p(ctx, t) }

// veto refuses one worker.
type veto string

func (v veto) PrePromote(_ context.Context, t plugins.Transition) error {
	if t.Worker == string(v) {
		return fmt.Errorf("%s must not lead", t.Worker)
	}
	return nil
}

func play(part string) {
	if f := parts[part]; f != nil {
		f()
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "there is no part %q\n", part)
	os.Exit(2)
}
