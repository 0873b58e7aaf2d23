package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// robustSource locks and unlocks a POSIX robust process-shared mutex in a
// mapped file, as its stdin says.
//
//go:embed robust/mutex.c
var robustSource string

// peers are the locks between processes that an operating system offers.
// What cannot be had here is skipped with a word.
func (t *tables) peers() (rows []*row, done func()) {
	var closers []io.Closer
	done = func() {
		for _, c := range closers {
			c.Close()
		}
	}
	open := func(name string) *os.File {
		f, err := os.OpenFile(t.path(name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.skip(name, err)
			return nil
		}
		closers = append(closers, f)
		return f
	}
	if f := open("flock"); f != nil {
		rows = append(rows, &row{name: flockPair, ref: pair, what: "LOCK_EX and LOCK_UN of an open file: two system calls.", run: flocks(f)})
	}
	if f := open("ofd"); f != nil {
		if run, err := ofdLocks(f); err != nil {
			t.skip("fcntl, OFD locks", err)
		} else {
			rows = append(rows, &row{name: "fcntl, OFD locks", ref: pair, what: "F_OFD_SETLKW with F_WRLCK and F_UNLCK: two system calls.", run: run})
		}
	}
	if exe, err := t.robust(); err != nil {
		t.skip("POSIX robust mutex", err)
	} else if c, err := startChild(exec.Command(exe, t.path("robust"))); err != nil {
		t.skip("POSIX robust mutex", err)
	} else {
		closers = append(closers, c)
		rows = append(rows, &row{name: "POSIX robust mutex", ref: pair, what: "pthread_mutex_lock and unlock, PTHREAD_PROCESS_SHARED and PTHREAD_MUTEX_ROBUST, in C: it survives the death of its holder, but leaves a half-written value to the next.", far: c.times})
	}
	return rows, done
}

func flocks(f *os.File) runner {
	fd := int(f.Fd())
	return func(n int) {
		for range n {
			if syscall.Flock(fd, syscall.LOCK_EX) != nil || syscall.Flock(fd, syscall.LOCK_UN) != nil {
				panic("flock failed")
			}
		}
	}
}

// robust builds the C program, once.
func (t *tables) robust() (string, error) {
	exe := t.path("robust-bench")
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", fmt.Errorf("no C compiler: %w", err)
	}
	src := t.path("robust.c")
	if err := os.WriteFile(src, []byte(robustSource), 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command(gcc, "-O2", "-pthread", "-o", exe, src).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", gcc, err, strings.TrimSpace(string(out)))
	}
	return exe, nil
}

// kid is another process that runs one operation when it is told to: "n N" is
// answered with the nanoseconds that N of them took, "for MS" with how many
// were done in that many milliseconds.
type kid struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startChild(cmd *exec.Cmd) (*kid, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k := &kid{cmd: cmd, in: in, out: bufio.NewScanner(out)}
	if !k.out.Scan() || k.out.Text() != "ready" {
		k.Close()
		return nil, fmt.Errorf("%s did not start", cmd.Path)
	}
	return k, nil
}

func (k *kid) tell(format string, args ...any) error {
	_, err := fmt.Fprintf(k.in, format+"\n", args...)
	return err
}

func (k *kid) answer() (int64, error) {
	if !k.out.Scan() {
		return 0, fmt.Errorf("%s ended", k.cmd.Path)
	}
	return strconv.ParseInt(k.out.Text(), 10, 64)
}

func (k *kid) times(n int) (time.Duration, error) {
	if err := k.tell("n %d", n); err != nil {
		return 0, err
	}
	ns, err := k.answer()
	return time.Duration(ns), err
}

// Close ends the process: it ends with its stdin.
func (k *kid) Close() error {
	k.in.Close()
	return k.cmd.Wait()
}
