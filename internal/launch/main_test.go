//go:build unix

package launch

import (
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary play the stage, and the programs that tests
// start: the first argument names one.
func TestMain(m *testing.M) {
	Stage()
	if len(os.Args) > 1 {
		if f := programs[os.Args[1]]; f != nil {
			f(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

var programs map[string]func(args []string)

func init() {
	programs = map[string]func(args []string){
		"exit":   func(args []string) { n, _ := strconv.Atoi(args[0]); os.Exit(n) },
		"hang":   func([]string) { time.Sleep(time.Hour) },
		"report": report,
		"forks":  forks,
		"parent": parent,
	}
}

// report prints what a program finds itself with.
func report([]string) {
	dir, _ := os.Getwd()
	umask := unix.Umask(0)
	fmt.Printf("pid=%d\nppid=%d\npgid=%d\ndir=%s\numask=%03o\nuid=%d\ngid=%d\nargv0=%s\n",
		os.Getpid(), os.Getppid(), syscall.Getpgrp(), dir, umask, os.Getuid(), os.Getgid(), os.Args[0])
	groups, _ := os.Getgroups()
	fmt.Printf("groups=%v\n", groups)
	env := os.Environ()
	sort.Strings(env)
	for _, kv := range env {
		fmt.Println("env:" + kv)
	}
	for fd := 0; fd < 64; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil {
			// The runtime's own are closed on exec, inherited ones are not.
			flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if flags&unix.FD_CLOEXEC == 0 {
				fmt.Printf("fd:%d=%d\n", fd, st.Ino)
			}
		}
	}
}

// forks leaves a child in its group, says its pid and ends.
func forks([]string) {
	attr := &os.ProcAttr{Files: []*os.File{nil, os.Stdout, nil}}
	p, err := os.StartProcess(os.Args[0], []string{os.Args[0], "hang"}, attr)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("child=%d\n", p.Pid)
}

// parent starts a staged process, says its pid and waits to be killed.
func parent([]string) {
	p, err := Start(Spec{Path: os.Args[0], Args: []string{os.Args[0], "hang"}, Umask: -1, Staged: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("staged=%d\n", p.Identity().PID)
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
}

// output is where a test's programs print.
func output(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func read(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func values(text, prefix string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(k, prefix) {
			m[strings.TrimPrefix(k, prefix)] = v
		}
	}
	return m
}

func self(args ...string) Spec {
	return Spec{Path: testBinary, Args: append([]string{"tw"}, args...), Env: os.Environ(), Umask: -1, Staged: true}
}

var testBinary, _ = os.Executable()

func start(t *testing.T, spec Spec) *Process {
	t.Helper()
	p, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.KillGroup()
		p.Signal(syscall.SIGKILL)
		if p.Own() {
			ended(t, p)
			p.Reap()
		}
		p.Close()
	})
	return p
}

func release(t *testing.T, p *Process) {
	t.Helper()
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
}

const limit = 30 * time.Second

// ended waits for the end of p and says how it was.
func ended(t *testing.T, p *Process) Status {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(limit):
		t.Fatalf("%v has not ended in %v", p.Identity(), limit)
	}
	s, ok := p.Peek()
	if !ok {
		t.Fatalf("Peek of %v says that it runs, after Done", p.Identity())
	}
	return s
}
