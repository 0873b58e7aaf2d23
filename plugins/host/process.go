package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// drainAfterDeath is how long output is still read from a dead plugin's pipes,
// which a descendant of it may hold open for ever.
const drainAfterDeath = 200 * time.Millisecond

// process is one started plugin: the runner that go-plugin drives, and the
// only truth about whether it lives. go-plugin is never given standard error:
// it crashes its host over some lines.
type process struct {
	cmd  *exec.Cmd // set before Start
	mark string    // in the environment of it and its descendants
	log  func(line string)
	last lastWords

	lifeline *os.File // the write end of the plugin's standard input
	first    *io.PipeReader
	firstW   *io.PipeWriter

	dead    chan struct{} // closed when it is reaped and what it started is killed
	readers sync.WaitGroup

	mu        sync.Mutex
	pid       int // 0 before the start
	reaped    bool
	state     *os.ProcessState // set before dead is closed
	handshake error            // what was wrong with the first line of standard output
	shaken    bool             // a handshake was seen
	killedFor string           // why we killed it, empty if we did not
}

var _ runner.Runner = (*process)(nil)

func newProcess(mark string, log func(string)) *process {
	p := &process{mark: mark, log: log, dead: make(chan struct{})}
	p.first, p.firstW = io.Pipe()
	return p
}

// Start is called by go-plugin, once.
func (p *process) Start(context.Context) (err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			for _, f := range opened {
				f.Close()
			}
		}
	}()
	pipe := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		if r, w, err = os.Pipe(); err == nil {
			opened = append(opened, r, w)
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	if err != nil {
		return fmt.Errorf("open pipes for the plugin: %w", err)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inR, outW, errW
	p.cmd.SysProcAttr = childAttr()
	p.mu.Lock()
	doomed := p.killedFor
	p.mu.Unlock()
	if doomed != "" {
		return errors.New(doomed)
	}
	if err = spawn(p.cmd); err != nil {
		return err
	}
	inR.Close()
	outW.Close()
	errW.Close()
	p.mu.Lock()
	p.pid, p.lifeline = p.cmd.Process.Pid, inW
	doomed = p.killedFor
	p.mu.Unlock()
	if doomed != "" {
		defer p.kill(doomed)
	}
	p.readers.Add(2)
	go p.readStdout(outR)
	go p.readStderr(errR)
	go p.await(outR, errR)
	return nil
}

// await ends with the process: group killed while the zombie keeps its number
// from being given away, stray descendants killed, last words read, reaped.
func (p *process) await(pipes ...*os.File) {
	if awaitExit(p.pid) {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	} else {
		_ = p.cmd.Wait()
		// Reaped already: descendants, if any, still keep the group's number.
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	killLeftovers(p.mark)
	for _, f := range pipes {
		_ = f.SetReadDeadline(time.Now().Add(drainAfterDeath))
	}
	p.readers.Wait()
	for _, f := range pipes {
		f.Close()
	}
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Wait()
	}
	p.mu.Lock()
	p.state = p.cmd.ProcessState
	p.mu.Unlock()
	p.lifeline.Close()
	p.firstW.Close()
	close(p.dead)
}

// readStdout passes the first line on to go-plugin; whatever follows is a
// plugin that prints.
func (p *process) readStdout(r io.Reader) {
	defer p.readers.Done()
	n := 0
	readLines(r, func(line string) {
		n++
		if n > 1 {
			p.log("stdout: " + plainLine(line))
			return
		}
		err := checkHandshake(line)
		p.mu.Lock()
		p.handshake, p.shaken = err, err == nil
		p.mu.Unlock()
		if err != nil {
			p.log("stdout: " + line)
			line = "refused" // go-plugin repeats what it is given in its error
		}
		// Not from here: nobody may be reading, and the pipe must be drained.
		go fmt.Fprintln(p.firstW, line)
	})
}

func (p *process) readStderr(r io.Reader) {
	defer p.readers.Done()
	readLines(r, func(line string) {
		line = plainLine(line)
		p.last.add(line)
		p.log(line)
	})
}

// checkHandshake judges the first line that a plugin printed.
func checkHandshake(line string) error {
	parts := strings.Split(strings.TrimSpace(line), "|")
	numeric := func(s string) bool { _, err := strconv.Atoi(s); return err == nil }
	if len(parts) < 5 || !numeric(parts[0]) || !numeric(parts[1]) {
		if len(line) > 80 {
			line = strings.ToValidUTF8(line[:80], "") + "..."
		}
		return fmt.Errorf("printed %q to standard output before its handshake: standard output belongs to the handshake, print to standard error (and not before plugins.Serve, if the plugin does not use Go)", line)
	}
	if parts[2] != "unix" {
		return fmt.Errorf("listens on %s %s: only Unix sockets are used, in the folder that PLUGIN_UNIX_SOCKET_DIR names", parts[2], parts[3])
	}
	if parts[4] != "grpc" {
		return fmt.Errorf("speaks %s: only grpc is used", parts[4])
	}
	return nil
}

// kill ends the process group at once, or as soon as there is one; the first
// reason is kept. It does not wait: dead is closed when it is done.
func (p *process) kill(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	if p.killedFor == "" {
		p.killedFor = why
	}
	if p.pid == 0 {
		return
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	// A child that has not come as far as its own group yet.
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
}

// died reports whether the process is dead, waiting up to limit for it.
func (p *process) died(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.dead:
		return true
	case <-timer.C:
		return false
	}
}

// end says how the process ended, with its last words. Only after dead.
func (p *process) end() string {
	p.mu.Lock()
	state, why := p.state, p.killedFor
	p.mu.Unlock()
	var s string
	switch {
	case why != "":
		s = "killed: " + why
	case state == nil:
		s = "ended"
	default:
		s = state.String() // "exit status 3", "signal: killed"
	}
	if words := p.last.String(); words != "" {
		s += "; last words: " + words
	}
	return s
}

// The rest of what go-plugin wants of a runner.

func (p *process) Stdout() io.ReadCloser { return p.first }
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }
func (p *process) Name() string          { return p.cmd.Args[0] }

func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return ""
	}
	return strconv.Itoa(p.pid)
}

func (p *process) Wait(ctx context.Context) error {
	select {
	case <-p.dead:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *process) Kill(context.Context) error {
	p.kill("go-plugin asked for it")
	return nil
}

func (p *process) Diagnose(context.Context) string { return "" }

func (p *process) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// startError makes the error of exec useful.
func startError(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program of this machine, or a script without #!: %w", path, err)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%s, its interpreter or the plugin's working directory does not exist: %w", path, err)
	}
	return fmt.Errorf("start %s: %w", path, err)
}
