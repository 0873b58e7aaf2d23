// Command kv is a worker of a role: a small key-value store over HTTP that
// survives the death of its leader.
//
// Only the leader accepts connections, from the socket "http" that the
// supervisor holds for the role; the other workers follow its journals and are
// ready to go on. While nobody leads, connections wait in the socket's backlog.
//
//	PUT    /kv/KEY   store a value of up to 1 MiB; 204 once it is safe
//	GET    /kv/KEY   read it
//	DELETE /kv/KEY   remove it
//	GET    /status   who leads, as JSON
//
// 503 means that this process does not lead any more. It closes the
// connection; the next one reaches the next leader. Package store says what an
// acknowledged write is worth.
//
// The journals are safe under every kind of fencing. On the socket alone a
// leader that is stopped and not killed (fence = "token") keeps the
// connections that it had accepted until it runs again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/examples/kv/store"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("kv", flag.ContinueOnError)
	flags.SetOutput(stderr)
	data := flags.String("data", "", "folder for journals and snapshots; created if missing")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *data == "" || flags.NArg() > 0:
		fmt.Fprintln(stderr, "kv: want --data DIR and nothing else")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := log.New(stderr, "", 0) // standbyd stamps each line
	if err := work(ctx, *data, logger); err != nil {
		logger.Printf("kv: %v", err)
		return 1
	}
	return 0
}

// worker is this process in its role, leading or not.
type worker struct {
	store   *store.Store
	log     *log.Logger
	stop    context.CancelCauseFunc // ends the process
	serving atomic.Pointer[server]  // nil unless it leads
}

// check is what the role's progress_timeout goes by: a read still gets through.
// It does not touch the disk, for a slow one is no reason to change leaders: the
// next one would have the same.
func (w *worker) check() error {
	s := w.serving.Load()
	if s == nil {
		return nil
	}
	_, _, err := s.w.Get("check")
	return err
}

func work(ctx context.Context, data string, logger *log.Logger) error {
	s, err := store.Open(data, store.Options{Role: os.Getenv("STANDBYD_ROLE"), Log: logger.Printf})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &worker{store: s, log: logger, stop: stop}
	followed := make(chan struct{})
	warm := func(ctx context.Context, _ *coord.Member) error {
		started := time.Now()
		if err := s.CatchUp(ctx); err != nil {
			return err
		}
		logger.Printf("warm after %s: %d keys, %s", time.Since(started).Round(time.Microsecond), s.Keys(), s.Position())
		return nil
	}
	go func() {
		defer close(followed)
		if err := s.Follow(ctx); err != nil {
			stop(err)
		}
	}()
	err = coord.Run(ctx, w.lead, coord.WithWarmup(warm), coord.WithCheck(w.check))
	cause := context.Cause(ctx)
	stop(nil)
	<-followed
	if store.IsFatal(cause) {
		return cause
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// lead serves until ctx ends. It returns only when the last request is
// answered and the journal is closed: then the lease may go to another.
func (w *worker) lead(ctx context.Context, l *coord.Leadership) error {
	began := time.Now()
	ln, err := l.Listener("http")
	if err != nil {
		w.log.Printf("cannot lead as %s: %v", l.Token(), err)
		return err
	}
	defer ln.Close()
	writer, err := w.store.Lead(ctx, l)
	if err != nil {
		w.log.Printf("cannot lead as %s: %v", l.Token(), err)
		if store.IsFatal(err) {
			w.stop(err)
		}
		return err
	}
	defer writer.Close()
	w.log.Printf("leads as %s on http://%s, %d keys, ready to serve after %s", l.Token(), ln.Addr(), w.store.Keys(), time.Since(began).Round(time.Microsecond))
	s := &server{worker: l.Member().Name(), l: l, w: writer, since: began.UTC(), log: w.log}
	w.serving.Store(s)
	defer w.serving.Store(nil)
	err = s.serve(ctx, ln)
	w.log.Printf("led as %s for %s: %v", l.Token(), time.Since(began).Round(time.Millisecond), ending(ctx, err))
	return err
}

func ending(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}
