package filelease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
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

// claimant is a process that plays along.
type claimant struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newClaimant(t *testing.T, root string) *claimant {
	t.Helper()
	cmd := exec.Command(os.Args[0], "claimant", root)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &claimant{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(c.kill)
	return c
}

func (c *claimant) tell(order string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, order+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// answer is the first word and the number after it.
func (c *claimant) answer() (word string, n uint64) {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err = strconv.ParseUint(rest, 10, 64)
	if err != nil {
		c.t.Fatalf("claimant said %q", line)
	}
	return word, n
}

func (c *claimant) ask(order string) (string, uint64) {
	c.t.Helper()
	c.tell(order)
	return c.answer()
}

// kill is kill -9, and waits.
func (c *claimant) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
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
