//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

func TestMain(m *testing.M) {
	if os.Getenv("STANDBYD_SEGMENT") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestCountGoesOn: the second leader counts from where the first one was killed.
func TestCountGoesOn(t *testing.T) {
	p := shm.DefaultParams()
	p.Tick = 20 * time.Millisecond
	path := filepath.Join(t.TempDir(), "segment")
	seg, err := shm.Create(path, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	count := func() (*exec.Cmd, func() int) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "STANDBYD_SEGMENT="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		lines := make(chan string)
		go func() {
			for s := bufio.NewScanner(out); s.Scan(); {
				lines <- s.Text()
			}
		}()
		return cmd, func() int {
			select {
			case l := <-lines:
				n, err := strconv.Atoi(l)
				if err != nil {
					t.Fatalf("it printed %q", l)
				}
				return n
			case <-time.After(time.Minute):
				t.Fatal("it does not count")
			}
			return 0
		}
	}
	first, next := count()
	_, then := count()
	for want := 1; want <= 2; want++ {
		if n := next(); n != want {
			t.Fatalf("the first counts %d, want %d", n, want)
		}
	}
	first.Process.Kill()
	if n := then(); n != 3 {
		t.Errorf("the second goes on with %d, want 3", n)
	}
}
