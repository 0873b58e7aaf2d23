//go:build unix

package plugins

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/plugins/internal/wire"
)

const playKey = "TEST_PLAY"

func TestMain(m *testing.M) {
	switch os.Getenv(playKey) {
	case "":
		os.Exit(m.Run())
	case "wait":
		fmt.Println("printed early")
		select {}
	case "serve":
		Serve(&Duty{})
	case "child":
		// A child of a plugin that was given the plugin's environment.
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), playKey+"=grandchild")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
		}
	case "grandchild":
		fmt.Println("launched", launched)
	}
	os.Exit(0)
}

func again(play string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), playKey+"="+play), env...)
	return cmd
}

const cookie = wire.CookieKey + "=" + wire.CookieValue

// A program that was started as a plugin ends with its lifeline, wherever it
// is, and what it prints is not in the handshake.
func TestLifelineEndsTheProcess(t *testing.T) {
	cmd := again("wait", cookie)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer overdue.Stop()
	if line, err := bufio.NewReader(stderr).ReadString('\n'); line != "printed early\n" {
		t.Errorf("have %q, %v", line, err)
	}
	lifeline.Close()
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != wire.ExitLost {
		t.Errorf("ended with %v, want status %d", err, wire.ExitLost)
	}
	if stdout.Len() != 0 {
		t.Errorf("%q in the handshake", stdout.String())
	}
}

func TestServeByHandSaysWhatToDo(t *testing.T) {
	cmd := again("serve")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "[[role.NAME.plugin]]") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestChildrenAreNoPlugins(t *testing.T) {
	cmd := again("child", cookie)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr // standard output has moved there
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if stderr.String() != "launched false\n" {
		t.Errorf("have %q", stderr.String())
	}
}
