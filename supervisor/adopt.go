package supervisor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/proc"
)

const (
	// handBack is how long workers have to hand back their listeners before
	// they are fetched.
	handBack = 2 * time.Second
	// endWait is how long we wait for the end of what cannot be adopted.
	endWait = 10 * time.Second
)

// open makes the role ready for run: it adopts what an earlier supervisor left
// at work, or begins anew. adopted says which. Called once, before run.
func (r *roleLoop) open() (adopted bool, err error) {
	defer r.watchFaults()()
	r.noteFolder()
	list, lerr := readWorkers(r.paths.workers())
	if lerr != nil {
		r.emit(Event{Type: EventWarning, Text: lerr.Error()})
	}
	r.st.generation = list.Generation // the next one is above it
	living, ended := r.living(list), []adoptee(nil)
	if len(living) > 0 {
		if err := r.reuse(list); err != nil {
			pids := make([]int, 0, len(living))
			for _, w := range living {
				pids = append(pids, w.Identity.PID)
			}
			r.emit(Event{Type: EventWarning, Text: fmt.Sprintf("the running workers cannot be adopted and are ended (%s): %v", describePIDs(pids), err)})
			for _, w := range living {
				r.end(w.process)
				r.endGroupOf(w.Name, w.Identity, r.sup.groups.ours(r.config.Name, w.Cgroup))
			}
			living, ended = nil, living
		}
	}
	r.endStrays(living)
	r.place(living)
	defer func() {
		if err != nil {
			r.abandon()
		}
	}()
	if len(living) == 0 {
		if err := r.bindSockets(); err != nil {
			return false, err
		}
		r.st.sockets = true
		if err := r.furnish(); err != nil {
			return false, err
		}
		led := r.ledLastIn(list.Segment)
		for _, w := range list.Workers {
			r.recordEnd(w, led(w.Identity.PID), slices.ContainsFunc(ended, func(e adoptee) bool { return e.Identity == w.Identity }))
		}
		if err := r.newSegment(); err != nil {
			return false, err
		}
		r.st.generation, r.st.segment = r.seg.generation(), r.seg.seg.Path()
		r.hire()
		return false, nil
	}
	if err := r.furnish(); err != nil {
		return true, err
	}
	r.takeOver(list)
	r.borrowSockets()
	if r.st.sockets = len(r.missingSockets()) == 0; !r.st.sockets {
		r.st.socketsS = now().after(handBack)
	}
	r.hire()
	return true, nil
}

// adoptee is a listed worker that lives.
type adoptee struct {
	listedWorker
	process *launch.Process
}

// living takes hold of the listed processes that are the same ones still.
func (r *roleLoop) living(list workersFile) (found []adoptee) {
	for _, w := range list.Workers {
		process, err := launch.Adopt(w.Identity)
		if err != nil {
			if now, oerr := proc.Of(w.Identity.PID); oerr == nil && now != w.Identity {
				r.emit(Event{Type: EventWarning, Worker: w.Name, PID: w.Identity.PID,
					Text: "this pid is not ours any more (it started at another time): left alone"})
			}
			continue
		}
		found = append(found, adoptee{w, process})
	}
	return found
}

// reuse opens the segment that the living workers are in.
func (r *roleLoop) reuse(list workersFile) error {
	seg, err := shm.Open(list.Segment)
	if err != nil {
		return err
	}
	if g := seg.Params().Generation; g != list.Generation {
		seg.Close()
		return fmt.Errorf("segment %s has generation %d and the workers were started in %d", list.Segment, g, list.Generation)
	}
	r.seg, err = use(seg)
	return err
}

// end kills a process that cannot be adopted, with its group, and waits.
func (r *roleLoop) end(p *launch.Process) {
	p.KillGroup()
	p.Signal(syscall.SIGKILL)
	select {
	case <-p.Done():
	case <-time.After(endWait):
		r.emit(Event{Type: EventWarning, PID: p.Identity().PID, Text: "was killed and does not end"})
	}
	p.Close()
}

// endStrays ends processes of the role that are on no list, and that none of
// the living workers has started.
func (r *roleLoop) endStrays(living []adoptee) {
	known := func(id proc.Identity) bool {
		return slices.ContainsFunc(living, func(w adoptee) bool { return w.Identity == id })
	}
	found := strays(r.paths.dir, "", known)
	if len(found) == 0 {
		return
	}
	inGroup := make([][]int, len(living))
	for i, w := range living {
		if c := r.sup.groups.ours(r.config.Name, w.Cgroup); c != nil {
			inGroup[i], _ = c.PIDs()
		}
	}
	found = slices.DeleteFunc(found, func(id proc.Identity) bool {
		for i, w := range living {
			if slices.Contains(inGroup[i], id.PID) || descends(id, w.Identity, w.Name, r.seg.seg.Path()) {
				return true
			}
		}
		return false
	})
	r.endAll(found, "", "was started for this role and is on no list: ended")
}

// endLeft ends what a process of a worker left outside its process group.
// Safe for any goroutine.
func (r *roleLoop) endLeft(worker string) {
	nobody := func(proc.Identity) bool { return false }
	r.endAll(strays(r.paths.dir, worker, nobody), worker, "was left behind by "+worker+" outside its process group: ended")
}

// endAll ends processes, and says so. Safe for any goroutine.
func (r *roleLoop) endAll(found []proc.Identity, worker, why string) {
	for _, id := range found {
		p, err := launch.Adopt(id)
		if err != nil {
			continue
		}
		program, _ := programOf(id.PID)
		r.emit(Event{Type: EventWarning, Worker: worker, PID: id.PID, Text: cmp.Or(program, "a process") + " " + why})
		r.end(p)
	}
}

// place makes the posts, with the adopted processes in theirs.
func (r *roleLoop) place(living []adoptee) {
	places := len(r.st.workers)
	for _, w := range living {
		places = max(places, w.Index+1)
	}
	for i := len(r.st.workers); i < places; i++ {
		r.st.workers = append(r.st.workers, worker{name: workerName(r.config.Name, i), extra: true})
	}
	r.posts = make([]*post, places)
	for i := range r.posts {
		r.posts[i] = &post{deaths: deathLog{r.paths.deaths(r.st.workers[i].name), -1}}
	}
	for _, a := range living {
		w := &r.st.workers[a.Index]
		opened := make(chan struct{})
		close(opened)
		l := &life{process: a.process, group: r.sup.groups.ours(r.config.Name, a.Cgroup), started: a.StartedAt, opened: opened, endProbe: func() {}, settings: a.Settings}
		r.posts[a.Index].life = l
		w.pid, w.started, w.restarts, w.lot, w.wanted = a.Identity.PID, a.StartedAt, a.Restarts, lotStarting, !w.extra
		w.startAt = proc.MonoNow() - int64(max(time.Since(a.StartedAt), 0))
		w.vitals = vitals{limit: r.config.Watchdog, said: a.Ready, admitted: a.Ready}
		if a.Settings == r.config.launchPrint() {
			w.version = r.st.version
		}
		if deaths, _, err := readDeaths(r.posts[a.Index].deaths.path); err == nil && len(deaths) > 0 {
			w.lastExit = deaths[len(deaths)-1].exit()
		}
		w.due = now().after(r.config.StartTimeout)
		r.emit(Event{Type: EventWorkerAdopted, Worker: w.name, PID: w.pid})
		r.watch(a.Index, l)
	}
}

// takeOver reads from the segment and the history where the role stands.
func (r *roleLoop) takeOver(list workersFile) {
	s := &r.st
	s.generation, s.segment = r.seg.generation(), r.seg.seg.Path()
	// The keeper of the folders tells what is wrong with it for as long as it is.
	_ = r.sup.keep.Load().found(r.config.Name, s.generation)
	at := now()
	led := func(int) bool { return false }
	r.touch(func(u *segmentUse) { led = ledLast(u.election) })
	for _, w := range list.Workers {
		if w.Index < len(s.workers) && s.workers[w.Index].pid == w.Identity.PID {
			continue
		}
		// It ended while nobody watched: its next start is a restart.
		exit := r.recordEnd(w, led(w.Identity.PID), false)
		if w.Index >= len(s.workers) {
			continue
		}
		gone := &s.workers[w.Index]
		gone.past = append(gone.past, w.Identity.PID)
		if gone.pid == 0 && !gone.extra {
			gone.restarts, gone.lastExit = w.Restarts, exit
			gone.lot, gone.why = lotBackoff, "ended while no supervisor ran"
		}
	}
	r.touch(func(u *segmentUse) {
		pid, _ := u.election.Active()
		for i := range s.workers {
			// A leader's place stays empty in a role that is paused.
			s.workers[i].led = s.workers[i].pid == 0 && pid != 0 && s.indexOf(pid) == i
		}
		// Whoever ended while nobody watched.
		u.election.Evict(u.election.Dead)
		if r.config.Fence != FenceTree {
			u.election.Bury(u.election.Dead)
		}
		c := u.election.Control()
		s.control = controlWord{gate: c.Gate, nominee: -1, resign: c.ResignTerm, granted: c.GrantedTerm}
		if c.ByHand && c.State != election.ControlClosed && c.State != election.ControlOpen {
			s.pause = pausing{on: true, until: c.Until}
		}
		if c.State == election.ControlHeld {
			s.control.mode, s.control.until = controlHeld, c.Until
			if c.Until == 0 {
				s.control.until = at.after(r.config.CoolDown)
			}
		}
		s.adopted = pid != 0 && s.byPID(pid) >= 0
	})
	r.setControl(s.controlNow()) // a shutdown that was cut short is undone
	records, _ := r.sup.history.read(r.config.Name)
	for _, rec := range records {
		if rec.Reason != role.ReasonFirst {
			kept := rec
			s.last = &kept
		}
		if mono := at.Mono - int64(at.Wall.Sub(rec.At)); failover(rec.Reason) && mono > at.Mono-int64(r.config.Per) && mono <= at.Mono {
			s.failovers = append(s.failovers, mono)
		}
		if rec.Token.Generation() == s.generation {
			s.recorded, s.ledBy = rec.Term, rec.To
		}
	}
	s.counted = s.recorded
}

// hire puts the hooks to their queue; workers of places without a process
// follow when they have started.
func (r *roleLoop) hire() {
	envs := make([]HookEnv, len(r.config.Hooks))
	for i := range envs {
		envs[i] = HookEnv{
			Role: r.config.Name, RuntimeDir: r.paths.hookDir(i), Segment: r.st.segment, Log: r.logOf(i),
			Changed: func() { go r.tell(inHook{hook: i}) },
			Replay:  func() { go r.tell(inReplay{i}) },
		}
	}
	r.queue = newHookQueue(r.config.Hooks, envs, r.config.HookTimeout, proc.MonoNow, func(in input) { r.tell(in) })
	r.hiring = time.Now()
	r.queue.put(doJob{kind: momentStart})
}

// logOf writes a hook's lines to the role's plugin log.
func (r *roleLoop) logOf(i int) func(string) {
	name := r.config.Hooks[i].Name
	return func(line string) {
		if out := r.pluginLog.Load(); out != nil {
			(*out).Note(name + ": " + line)
		}
	}
}

// retired are the roles that have a folder and are not in the config.
func (s *Supervisor) retired() (names []string) {
	entries, _ := os.ReadDir(rolesDir(s.config.RuntimeDir))
	for _, e := range entries {
		if e.IsDir() && !slices.ContainsFunc(s.config.Roles, func(c RoleConfig) bool { return c.Name == e.Name() }) {
			names = append(names, e.Name())
		}
	}
	return names
}

// wasRole tells whether a folder beside those of the roles has something that
// only a role's has: others are none of ours.
func wasRole(dir string) bool {
	for _, name := range []string{socketName, "workers.json", "segment.*", "*.fifo"} {
		if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 {
			return true
		}
	}
	return false
}
