package filelease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary play claimants. They obey what they read: a
// line "claim KEY", "release", "verify", "next KEY", and answer with one line.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "claimant" {
		obey(os.Args[2])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func obey(root string) {
	s, err := Open(root)
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
		var epoch uint64
		switch words[0] {
		case "claim":
			l, err = s.Claim(ctx, words[1], Claimant{Label: "claimant"})
			if err == nil {
				epoch = l.Epoch()
			}
		case "release":
			err = s.Release(ctx, l)
		case "verify":
			err = s.Verify(ctx, l)
		case "next":
			epoch, err = s.NextEpoch(ctx, words[1])
		}
		switch {
		case errors.As(err, &held):
			fmt.Println("held", held.Holder.PID)
		case err != nil:
			fmt.Println("error", err)
		default:
			fmt.Println("ok", epoch)
		}
	}
}

func open(t *testing.T, root string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(root, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func claim(t *testing.T, s *Store, key string) *Lease {
	t.Helper()
	l, err := s.Claim(within(t), key, Claimant{Label: "test", Version: "1.2", SessionHint: "hint"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// heldBy fails unless err says that pid holds the lease.
func heldBy(t *testing.T, err error, pid int) *HeldError {
	t.Helper()
	var held *HeldError
	if !errors.As(err, &held) || held.Holder.PID != pid {
		t.Fatalf("got %v, want held by pid %d", err, pid)
	}
	return held
}
