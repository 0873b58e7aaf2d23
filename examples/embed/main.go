// Command embed is a larger program that keeps a role of its own alive: it
// embeds package supervisor instead of running the standbyd daemon, and does
// its leader duties in hooks of its own instead of plugins.
//
// The workers of its role "clock" are this same program, started again with
// the argument "worker": the leader prints the time each second. The hook
// keeps the file leader.txt, which names who leads and exists only while
// somebody does.
//
//	go run ./examples/embed --dir ./data/embed
//
// Kill the leader by hand and watch a standby go on; stop it all with Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/supervisor"
)

func main() {
	// The supervisor starts workers through a short stage of this very
	// program. It must come before anything else: it never returns there.
	supervisor.Stage()

	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := supervise
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		run = work
	}
	if err := run(ctx); err != nil {
		log.Fatal("embed: ", err)
	}
}

// work is one worker of the role.
func work(ctx context.Context) error {
	return coord.Run(ctx, func(ctx context.Context, l *coord.Leadership) error {
		for {
			if l.Check() == nil {
				log.Printf("it is %s, says %s under token %s", time.Now().Format(time.TimeOnly), l.Member().Name(), l.Token())
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// supervise is the program that embeds.
func supervise(ctx context.Context) error {
	flags := flag.NewFlagSet("embed", flag.ExitOnError)
	dir := flags.String("dir", "data/embed", "folder for everything that the program writes")
	flags.Parse(os.Args[1:])
	root, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}

	clock := supervisor.DefaultRole()
	clock.Name = "clock"
	clock.Command = []string{program, "worker"}
	clock.Dir = root
	clock.Workers = 2
	clock.Hooks = []supervisor.NamedHooks{{Name: "sign", Hooks: &sign{file: filepath.Join(root, "leader.txt")}}}

	s, err := supervisor.New(supervisor.Config{
		RuntimeDir: filepath.Join(root, "run"),
		StateDir:   filepath.Join(root, "state"),
		Roles:      []supervisor.RoleConfig{clock},
	})
	if err != nil {
		return err
	}
	// Events go on until the supervisor has stopped, which is after ctx ends.
	watching, done := context.WithCancel(context.Background())
	watched := make(chan struct{})
	events := s.Subscribe(watching)
	go func() {
		defer close(watched)
		for e := range events {
			show(e)
		}
	}()
	err = s.Run(ctx) // nil after ctx has ended and the last worker is gone
	done()
	<-watched
	return err
}

// show prints what is worth a line.
func show(e supervisor.Event) {
	switch e.Type {
	case supervisor.EventWorkerReady:
		log.Printf("%s is ready, pid %d", e.Worker, e.PID)
	case supervisor.EventLeaderActive:
		log.Printf("%s leads, pid %d, token %s (%s)", e.Worker, e.PID, e.Token, e.Reason)
	case supervisor.EventLeaderLost:
		log.Printf("%s leads no more (%s)", e.Worker, e.Reason)
	case supervisor.EventWorkerFailed, supervisor.EventWarning:
		log.Printf("%s: %s %s", e.Type, e.Text, e.Error)
	}
}

// sign is the duty of this program's leader, done by the program itself.
type sign struct {
	supervisor.UnimplementedHooks
	file string
}

// OnPromote may be called again with the same token, so it writes the whole
// file each time.
func (s *sign) OnPromote(_ context.Context, t role.Transition) error {
	text := fmt.Sprintf("%s pid %d token %s\n", t.Worker, t.PID, t.Token)
	if err := os.WriteFile(s.file+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(s.file+".new", s.file)
}

func (s *sign) OnDemote(context.Context, role.Transition) error {
	if err := os.Remove(s.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
