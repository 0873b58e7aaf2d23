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
	p.Tick, p.Grace = 20*time.Millisecond, 5000 // only a death ends the first one
	path := filepath.Join(t.TempDir(), "segment")
	seg, err := shm.Create(path, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	count := func() (*exec.Cmd, <-chan string) {
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
			defer close(lines)
			for s := bufio.NewScanner(out); s.Scan(); {
				lines <- s.Text()
			}
		}()
		return cmd, lines
	}
	next := func(lines <-chan string) int {
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
	first, ones := count()
	if n := next(ones); n != 1 {
		t.Fatalf("the first begins with %d", n)
	}
	_, others := count()
	last := next(ones)
	if last != 2 {
		t.Fatalf("the first counts %d, want 2", last)
	}
	first.Process.Kill()
	for l := range ones {
		last, _ = strconv.Atoi(l)
	}
	// It may have been killed between its last count and the line about it.
	if n := next(others); n != last+1 && n != last+2 {
		t.Errorf("the second goes on with %d after %d", n, last)
	}
}
