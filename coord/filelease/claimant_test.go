package filelease

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

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
	return start(t, cmd)
}

// start starts a claimant in whatever way cmd says.
func start(t *testing.T, cmd *exec.Cmd) *claimant {
	t.Helper()
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
