package proc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// remember fills memory, and says for each byte that it reads whether the
// memory still holds what was written.
func remember() {
	const mark = 0x5a
	m, err := unix.Mmap(-1, 0, 32<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		os.Exit(3)
	}
	_ = unix.Madvise(m, unix.MADV_NOHUGEPAGE)
	for i := range m {
		m[i] = mark
	}
	os.Stdout.WriteString("up\n")
	for in := make([]byte, 1); ; {
		if _, err := os.Stdin.Read(in); err != nil {
			os.Exit(0)
		}
		if bytes.Count(m, []byte{mark}) != len(m) {
			os.Stdout.WriteString("lost\n")
			continue
		}
		os.Stdout.WriteString("whole\n")
	}
}

type rememberer struct {
	*exec.Cmd
	h   *Handle
	in  io.Writer
	out *bufio.Reader
}

func startRemembering(t *testing.T) rememberer {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "PROC_TEST_ROLE=remember")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	r := rememberer{Cmd: c, in: in, out: bufio.NewReader(out)}
	if line, err := r.out.ReadString('\n'); line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	id, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if r.h, err = OpenHandle(id); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.h.Close() })
	return r
}

// absentCall: the kernel is older than 5.15, or a filter keeps the call from us.
func absentCall(err error) bool { return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) }

// A hint of a process's end may be wrong; then it keeps its memory.
func TestMemoryOfTheLivingStays(t *testing.T) {
	r := startRemembering(t)
	for _, state := range []syscall.Signal{syscall.SIGCONT, syscall.SIGSTOP} {
		if err := r.h.Signal(state); err != nil {
			t.Fatal(err)
		}
		r.h.FreeMemory()
		if err := freeMemory(r.h.fd); !errors.Is(err, unix.EINVAL) && !absentCall(err) {
			t.Fatalf("free the memory of a living process, after %v: %v", state, err)
		}
		if err := r.h.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if _, err := r.in.Write([]byte{'?'}); err != nil {
			t.Fatal(err)
		}
		if line, err := r.out.ReadString('\n'); line != "whole\n" {
			t.Fatalf("its memory, after %v: %q, %v", state, line, err)
		}
	}
}

// Whether the kernel is asked in time is a race with the end of the process.
func TestMemoryOfTheDyingIsFreed(t *testing.T) {
	for round := range 200 {
		r := startRemembering(t)
		if err := r.h.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		err := freeMemory(r.h.fd)
		<-r.h.Done()
		switch {
		case err == nil:
			t.Logf("in round %d", round+1)
			return
		case absentCall(err):
			t.Skipf("process_mrelease: %v", err)
		case !errors.Is(err, unix.ESRCH):
			t.Fatalf("free the memory of a killed process: %v", err)
		}
	}
	t.Fatal("never in time")
}
