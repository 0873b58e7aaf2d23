package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/filelease"
	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/logreader"
	"github.com/standbyd/standbyd/internal/proc"
)

// Stage makes a program that embeds a Supervisor able to launch workers
// through a stage of its own: call it as the first line of main. If the
// process was started to read what workers print it does that and does not
// return; else it returns at once. Without it, workers are started directly: LISTEN_PID is not
// set, a worker whose supervisor dies between its start and its listing on
// disk is ended by the next supervisor instead of being adopted, and nobody
// reads what the workers print while no supervisor runs.
func Stage() {
	logreader.Stage()
	launch.Stage()
}

// Supervisor runs the roles of one Config. Its methods are safe for
// concurrent use.
type Supervisor struct {
	config  Config // Roles as at the start
	started time.Time
	bus     bus
	kill    chan struct{} // closed by Kill
	killing sync.Once
	all     sync.WaitGroup // the roles' loops, and conduct until it ends them

	lent      lentSockets
	turns     *turns
	reshaping reshaping // in the hands of whoever changes roles or their configs

	mu      sync.Mutex
	ran     bool
	running bool
	ending  bool           // no further role may begin
	roles   []*roleLoop    // in the order of the config; replaced, never written
	scaled  map[string]int // what the config says of workers, for the roles that Scale has given another number

	// Set by Run before the first role runs.
	groups  groups
	store   *filelease.Store
	keep    atomic.Pointer[upkeep] // nil before
	history *history
}

// New checks the config and looks up its users. It starts and touches nothing.
// The error is a *ConfigError.
func New(c Config) (*Supervisor, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Env == nil {
		c.Env = inheritedEnv()
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	c.RuntimeDir, c.StateDir = filepath.Clean(c.RuntimeDir), filepath.Clean(c.StateDir)
	s := &Supervisor{config: c, kill: make(chan struct{}), started: time.Now(), turns: newTurns(startsAtOnce())}
	for _, rc := range c.Roles {
		u, err := s.admit(&rc)
		if err != nil {
			return nil, err
		}
		s.roles = append(s.roles, newRoleLoop(s, rc.copy(), u))
	}
	return s, nil
}

// admit checks what a valid role needs of this process and this machine.
func (s *Supervisor) admit(rc *RoleConfig) (identity, error) {
	if field := rc.staged(); field != "" && !launch.CanStage() {
		return identity{}, &ConfigError{Role: rc.Name, Field: field, Msg: "needs the launch stage, which sets it or marks a worker's descendants: call supervisor.Stage first in main"}
	}
	if err := rc.Applicable(); err != nil {
		return identity{}, err
	}
	return lookUser(rc)
}

// loops are the roles at work.
func (s *Supervisor) loops() []*roleLoop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roles
}

// Run keeps the roles alive until ctx ends, then shuts down in order (the
// leaders drain, hooks are demoted, standbys and hooks stop) and returns nil.
// An error means that it could not begin: *AlreadyRunningError, *ConfigError
// for a folder or an address that cannot be had, or a failure of the system;
// nothing that it started is left then. A Supervisor runs once.
func (s *Supervisor) Run(ctx context.Context) (err error) {
	defer func() { err = s.unwritable(err) }()
	s.mu.Lock()
	if s.ran {
		s.mu.Unlock()
		return errors.New("run a supervisor: it has run already, make a new one")
	}
	s.ran = true
	s.mu.Unlock()

	keep, err := s.awaitInstance(ctx)
	if err != nil || keep == nil { // stopped while it waited
		return err
	}
	defer keep.release()
	defer os.Remove(rolesDir(s.config.RuntimeDir)) // unless a role could not be cleared
	if err := keep.remember(); err != nil {
		return err
	}
	s.keep.Store(keep)
	if s.config.Subreaper {
		if err := becomeSubreaper(); err != nil {
			return err
		}
	}
	if s.history, err = openHistory(historyPath(s.config.StateDir)); err != nil {
		return err
	}
	defer s.history.close()
	if text := s.history.trouble(); text != "" {
		s.bus.publish(Event{Type: EventWarning, Text: text})
	}
	if err := s.openGroups(); err != nil {
		return err
	}
	defer s.closeGroups()
	s.takeSockets()
	defer s.lent.close()
	own := s.loops()
	loops := append([]*roleLoop(nil), own...)
	for _, name := range s.retired() {
		if r := s.retire(name); r != nil {
			loops = append(loops, r)
		}
	}
	if err := openAll(loops, len(own)); err != nil {
		return err
	}
	s.bus.publish(Event{Type: EventSupervisorStarted, PID: os.Getpid(), Text: s.config.Version})
	s.setRunning(true)
	for i, r := range loops {
		s.all.Go(r.run)
		if i >= len(own) {
			r.tell(inClose{})
		}
	}
	over := make(chan struct{})
	s.all.Add(1)
	go s.conduct(ctx, loops[len(own):], over)
	if s.config.Subreaper {
		go s.reapOrphans(over)
	}
	var looking sync.WaitGroup
	looking.Go(func() { keep.run(over) })
	s.all.Wait()
	close(over)
	looking.Wait()
	keep.looked = nil // closely:
	keep.look()       // what was removed just now is to be whole for the next one
	s.setRunning(false)
	s.bus.publish(Event{Type: EventSupervisorStopped, PID: os.Getpid()})
	return nil
}

// openAll opens every role. If one cannot begin, all are given up, unless
// some role is at work already: then that one waits and the others go on.
func openAll(loops []*roleLoop, own int) error {
	adopted := false
	var failed error
	for _, r := range loops {
		took, err := r.open()
		adopted = adopted || took
		if err != nil && failed == nil {
			failed = err
		}
	}
	if failed == nil {
		return nil
	}
	if adopted {
		for _, r := range loops[:own] {
			r.beginLater()
		}
		return nil
	}
	for _, r := range loops {
		r.abandon()
	}
	return failed
}

// conduct turns the end of the context and Kill into inputs, for the roles of
// that moment and those that are retired.
func (s *Supervisor) conduct(ctx context.Context, retired []*roleLoop, over <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-s.kill:
	}
	s.mu.Lock()
	s.ending = true
	loops := append(append([]*roleLoop(nil), s.roles...), retired...)
	s.mu.Unlock()
	if ctx.Err() != nil {
		for _, r := range loops {
			go r.tell(inClose{})
		}
	}
	s.all.Done()
	select {
	case <-s.kill:
		for _, r := range loops {
			go r.tell(inKill{})
		}
	case <-over:
	}
}

// Kill ends every worker and hook at once, without order: for the second
// request to stop. Run returns when they are gone. Before Run it makes Run
// end as soon as it has begun.
func (s *Supervisor) Kill() { s.killing.Do(func() { close(s.kill) }) }

func (s *Supervisor) setRunning(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = on
}

func (s *Supervisor) isRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

const instanceKey = "standbyd"

// awaitInstance is claimInstance, which waits if the config says so. Both
// results are nil if Run was told to stop meanwhile.
func (s *Supervisor) awaitInstance(ctx context.Context) (*upkeep, error) {
	keep, err := s.claimInstance()
	var running *AlreadyRunningError
	if !s.config.Wait || !errors.As(err, &running) {
		return keep, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.kill:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.bus.publish(Event{Type: EventWarning, PID: running.PID, Text: "waiting for its end: " + running.Error()})
	for errors.As(err, &running) {
		// The lease tells when it is free. Given back at once: what follows
		// takes it together with the rest, or somebody else was faster.
		lease, werr := s.store.Wait(ctx, instanceKey, s.claimant())
		if werr == nil {
			werr = s.store.Release(context.Background(), lease)
		}
		pause := time.Duration(0)
		if running.Folder == s.config.RuntimeDir { // its lock must be asked
			pause = lookAgain
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(pause):
		}
		if ctx.Err() != nil { // both were ready
			return nil, nil
		}
		if werr != nil {
			return nil, werr
		}
		keep, err = s.claimInstance()
	}
	return keep, err
}

// lookAgain is how often a folder is asked for that another supervisor holds.
const lookAgain = 100 * time.Millisecond

func (s *Supervisor) claimant() filelease.Claimant {
	return filelease.Claimant{Label: s.config.ConfigFile, Version: s.config.Version, Pinned: true}
}

// claimInstance makes sure that nobody else works with our folders.
func (s *Supervisor) claimInstance() (*upkeep, error) {
	c := &s.config
	if err := prepareFolders(c.RuntimeDir, c.StateDir); err != nil {
		return nil, err
	}
	store, err := filelease.Open(c.StateDir)
	if err != nil {
		return nil, err
	}
	s.store = store
	lease, err := s.store.Claim(context.Background(), instanceKey, s.claimant())
	var held *filelease.HeldError
	if errors.As(err, &held) && !errors.Is(err, filelease.ErrUnreadable) {
		return nil, &AlreadyRunningError{Folder: c.StateDir, PID: held.Holder.PID, Since: held.Holder.Since, Label: held.Holder.Label}
	}
	if err != nil {
		return nil, err
	}
	// Another state folder with the same runtime folder would be a second set
	// of workers on the same sockets.
	lock, err := lockFolder(c.RuntimeDir)
	if err != nil {
		s.store.Release(context.Background(), lease)
		return nil, err
	}
	return newUpkeep(s, lease, lock), nil
}

// retire makes a loop for a role that is at work and no longer in the config:
// it is adopted in order to be stopped. nil: there is nothing to stop.
func (s *Supervisor) retire(name string) *roleLoop {
	dir := roleDir(s.config.RuntimeDir, name)
	c := DefaultRole()
	c.Name, c.Command, c.Workers = name, []string{"/bin/false"}, 0
	list, err := readWorkers(filepath.Join(dir, "workers.json"))
	if err != nil {
		s.bus.publish(Event{Type: EventWarning, Role: name, Text: err.Error()})
	}
	lives := func(w listedWorker) bool { return proc.Judge(w.Identity) != proc.Gone }
	if !slices.ContainsFunc(list.Workers, lives) {
		if !wasRole(dir) {
			return nil // somebody else's
		}
		newRoleLoop(s, c, identity{}).endStrays(nil)
		if err := endReader(s.config.RuntimeDir, name); err != nil {
			s.bus.publish(Event{Type: EventWarning, Role: name, Text: err.Error()})
		}
		os.RemoveAll(dir)
		return nil
	}
	if signalByName(list.StopSignal) != 0 {
		c.StopSignal = list.StopSignal
	}
	s.bus.publish(Event{Type: EventWarning, Role: name, Text: "the role is no longer in the config: its workers are stopped"})
	return newRoleLoop(s, c, identity{})
}

// copy shares nothing with the caller's value.
func (c RoleConfig) copy() RoleConfig {
	c.Command = append([]string(nil), c.Command...)
	c.PassEnv = append([]string(nil), c.PassEnv...)
	c.Listen = append([]ListenConfig(nil), c.Listen...)
	c.Hooks = append([]NamedHooks(nil), c.Hooks...)
	c.RestartOn, c.NoRestartOn = slices.Clone(c.RestartOn), slices.Clone(c.NoRestartOn)
	c.Ready.Exec, c.Health.Exec = slices.Clone(c.Ready.Exec), slices.Clone(c.Health.Exec)
	env := make(map[string]string, len(c.Env))
	for k, v := range c.Env {
		env[k] = v
	}
	c.Env = env
	options := make(map[int]WorkerOptions, len(c.WorkerOptions))
	for k, v := range c.WorkerOptions {
		options[k] = v
	}
	c.WorkerOptions = options
	return c
}

// Subscribe returns the events from now on. A subscriber that does not keep
// up loses the oldest ones, and sees how many in Event.Dropped. The channel is
// closed when ctx ends.
func (s *Supervisor) Subscribe(ctx context.Context) <-chan Event { return s.bus.subscribe(ctx) }

// RecentEvents returns the last events, at most 1000, oldest first.
func (s *Supervisor) RecentEvents() []Event { return s.bus.last() }

// History returns the records of a role, or of all roles if it is empty,
// oldest first. It reads the state folder and works without Run too.
func (s *Supervisor) History(roleName string) ([]Record, error) {
	if roleName != "" && s.role(roleName) == nil {
		return nil, fmt.Errorf("%w: %q", ErrNoRole, roleName)
	}
	if s.isRunning() {
		return s.history.read(roleName)
	}
	records, _, err := ReadHistory(s.config.StateDir, roleName)
	return records, err
}

func (s *Supervisor) role(name string) *roleLoop {
	for _, r := range s.loops() {
		if r.config.Name == name {
			return r
		}
	}
	return nil
}
