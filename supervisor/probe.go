package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// probe ends what asks the worker's process at present, and begins to ask it
// for kind. Each answer is an inProbed.
func (r *roleLoop) probe(i int, kind probeKind) {
	l := r.posts[i].life
	if l == nil {
		return
	}
	l.endProbe()
	p := r.config.Ready
	if kind == probeHealth {
		p = r.config.Health
	}
	if kind == probeNone || !p.IsSet() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.endProbe = cancel
	pid := l.process.Identity().PID
	tell := func(err error) bool { return ctx.Err() == nil && r.tell(inProbed{i, pid, kind, err}) }
	if p.FD != 0 {
		go func() {
			if err := awaitNewline(ctx, r.paths.ready(i)); ctx.Err() == nil {
				tell(err)
			}
		}()
		return
	}
	who := probed{index: i, pid: pid, worker: r.st.workers[i].name}
	env := r.environment(i)
	go func() {
		defer cancel()
		for {
			began := time.Now()
			err := r.try(ctx, p, who, env)
			// A try that took much longer than it may did so because this
			// process did not run: it says nothing about the worker.
			if frozen := err != nil && time.Since(began) > p.Timeout+time.Second; !frozen && !tell(err) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-r.done:
				return
			case <-time.After(p.Interval):
			}
		}
	}()
}

// try asks once. nil: the worker has shown what was asked for.
func (r *roleLoop) try(ctx context.Context, p Probe, who probed, env []string) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	var err error
	switch {
	case p.HTTP != "":
		err = tryHTTP(ctx, fill(p.HTTP, who))
	case p.TCP != "":
		err = tryTCP(ctx, fill(p.TCP, who))
	default:
		err = r.tryExec(ctx, p.Exec, who, env)
	}
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return fmt.Errorf("no answer within %v", p.Timeout)
	}
	return err
}

func tryHTTP(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "standbyd-probe")
	transport := &http.Transport{DisableKeepAlives: true}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 200 && response.StatusCode < 400 {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxText))
	return fmt.Errorf("GET %s: %s %s", url, response.Status, strings.TrimSpace(string(text)))
}

func tryTCP(ctx context.Context, address string) error {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		c.Close()
	}
	return err
}

// tryExec runs a program as the worker's user, in its folder and with its
// environment, and ends its whole group when the time is up.
func (r *roleLoop) tryExec(ctx context.Context, argv []string, who probed, env []string) error {
	args := make([]string, len(argv))
	for i, arg := range argv {
		args[i] = fill(arg, who)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = r.config.Dir, probeEnv(env, who)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c := r.user.credential; c != nil && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	var said limited
	cmd.Stdout, cmd.Stderr = &said, &said
	// A child of it may hold its output open: that is not waited for.
	cmd.WaitDelay = 100 * time.Millisecond
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			if cmd.Process.Signal(syscall.Signal(0)) == nil { // else its number may be another's
				syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
		case <-ended:
		}
	}()
	err := cmd.Wait()
	close(ended)
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return fmt.Errorf("%s: %w %s", args[0], err, strings.TrimSpace(string(said.text)))
}

// probeEnv is the worker's environment without what makes a process a worker.
func probeEnv(env []string, who probed) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "STANDBYD_SEGMENT", "NOTIFY_SOCKET", "STANDBYD_ADMISSION", "WATCHDOG_USEC":
		default:
			out = append(out, kv)
		}
	}
	return append(out, fmt.Sprintf("STANDBYD_PID=%d", who.pid))
}

// limited keeps the beginning of what is written to it.
type limited struct{ text []byte }

func (l *limited) Write(b []byte) (int, error) {
	if free := maxText - len(l.text); free > 0 {
		l.text = append(l.text, b[:min(free, len(b))]...)
	}
	return len(b), nil
}

// newlineLook is how often a readiness file is looked at, until it has said it.
const newlineLook = 20 * time.Millisecond

// awaitNewline returns nil when there is a newline in the file.
func awaitNewline(ctx context.Context, path string) error {
	tick := time.NewTicker(newlineLook)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read readiness: %w", err)
		}
		if bytes.IndexByte(text, '\n') >= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// readyFile makes the file in which a new process says that it is ready, and
// returns the worker's end. It is no pipe: what is said while no supervisor
// runs has to stay, and nobody may get SIGPIPE.
func (r *roleLoop) readyFile(i int) (*os.File, error) {
	path := r.paths.ready(i)
	os.Remove(path) // an earlier life's
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the readiness file: %w", err)
	}
	if uid, gid := r.user.owner(); uid >= 0 || gid >= 0 {
		if err := f.Chown(uid, gid); err != nil {
			f.Close()
			return nil, fmt.Errorf("make the readiness file: %w", err)
		}
	}
	return f, nil
}
