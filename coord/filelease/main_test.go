package filelease

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// roles are what the test binary plays when its first argument says so.
var roles = map[string]func(args []string){"claimant": func(args []string) { obey(args[0]) }}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if play := roles[os.Args[1]]; play != nil {
			play(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

const ttlVariable = "FILELEASE_TEST_TTL"

// obey lets the test binary be a claimant: it does what it reads, a line each,
// and answers with one line.
func obey(root string) {
	var opts []Option
	if d, err := time.ParseDuration(os.Getenv(ttlVariable)); err == nil {
		opts = append(opts, WithTTL(d))
	}
	s, err := Open(root, opts...)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	ctx := context.Background()
	var l *Lease
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		words := strings.Fields(in.Text())
		var held *HeldError
		var n uint64
		err = nil
		switch words[0] {
		case "claim", "pin", "wait":
			do := s.Claim
			if words[0] == "wait" {
				do = s.Wait
			}
			var got *Lease
			got, err = do(ctx, words[1], Claimant{Label: "claimant", Pinned: words[0] == "pin"})
			if err == nil {
				l, n = got, got.Epoch()
			}
		case "release":
			err = s.Release(ctx, l)
		case "verify":
			err = s.Verify(ctx, l)
		case "renew":
			err = s.Renew(ctx, l)
		case "keep":
			l.Keep(ctx)
		case "done":
			<-l.Done()
			err = l.Err()
		case "next":
			n, err = s.NextEpoch(ctx, words[1])
		case "name":
			var pid int
			fmt.Sscan(words[1], &pid)
			err = s.NameCommand(ctx, l, pid)
		case "count": // steps from here on
			steps.Store(0)
		case "steps":
			n = uint64(steps.Load())
		case "die": // at the step with this number
			steps.Store(0)
			fmt.Sscan(words[1], &dieAt)
		}
		switch {
		case errors.As(err, &held):
			fmt.Println("held", held.Holder.PID)
		case errors.Is(err, ErrLost):
			fmt.Println("lost 0")
		case err != nil:
			fmt.Println("error", err)
		default:
			fmt.Println("ok", n)
		}
	}
}

var (
	steps atomic.Int64
	dieAt int64
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "claimant" {
		atStep = func(string) {
			if n := steps.Add(1); dieAt > 0 && n == dieAt {
				p, _ := os.FindProcess(os.Getpid())
				p.Kill()
				select {}
			}
		}
	}
}

func open(t testing.TB, root string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(root, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func claim(t testing.TB, s *Store, key string) *Lease {
	t.Helper()
	l, err := s.Claim(within(t), key, Claimant{Label: "test", Version: "1.2", SessionHint: "hint"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// heldBy fails unless err says that pid holds the lease.
func heldBy(t testing.TB, err error, pid int) *HeldError {
	t.Helper()
	var held *HeldError
	if !errors.As(err, &held) || held.Holder.PID != pid {
		t.Fatalf("got %v, want held by pid %d", err, pid)
	}
	return held
}

// edit changes the record on disk, without stamping it.
func edit(t testing.TB, s *Store, key string, change func(*record)) {
	t.Helper()
	f, err := s.find(key)
	if err != nil || f.r == nil {
		t.Fatalf("no record of %q: %v, %v", key, err, f.damaged)
	}
	change(f.r)
	b, err := json.MarshalIndent(f.r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(s.file(key, leaseSuffix), b); err != nil {
		t.Fatal(err)
	}
}

// fakeClock stands still until a test moves it.
type fakeClock struct{ boot, wall atomic.Int64 }

func newClock() *fakeClock {
	c := &fakeClock{}
	c.boot.Store(int64(time.Hour))
	c.wall.Store(1_700_000_000)
	return c
}

func (c *fakeClock) Boottime() time.Duration { return time.Duration(c.boot.Load()) }
func (c *fakeClock) Now() time.Time          { return time.Unix(c.wall.Load(), 0) }
func (c *fakeClock) pass(d time.Duration)    { c.boot.Add(int64(d)); c.wall.Add(int64(d / time.Second)) }

func contents(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
