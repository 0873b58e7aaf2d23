package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/coord/filelease"
)

const (
	// upkeepEvery is how often the folders are looked at: some calls of stat.
	upkeepEvery = time.Second
	// upkeepWait is how long another process may be in a critical section.
	upkeepWait = 5 * time.Second
	// settledAfter: a folder that was changed less than that before it was read
	// may have been changed once more, under the same time of change.
	settledAfter = 2 * time.Second
	// closeLooks is how often the files are read although their folder has not
	// changed: one in so many looks. What is written into a file changes the
	// file alone.
	closeLooks = 10
	// rivalLooks is in how many looks in a row the state folder has to be
	// somebody else's before that is said: who waits for our end with Wait
	// holds it for moments.
	rivalLooks = 3
)

// upkeep holds what makes this supervisor the only one on its folders, and
// looks after the folders while it runs: what somebody removes is made again,
// with the generations that were in it, so that tokens do not fall after the
// next start. Its methods are for one goroutine at a time; those about
// generations and warnings are safe for all.
type upkeep struct {
	sup     *Supervisor
	lease   *filelease.Lease
	lock    *os.File    // the runtime folder, locked
	state   fs.FileInfo // of the state folder
	looked  fs.FileInfo // of the folder of leases as it was when all in it was right; nil: look closely
	trusted int         // looks since the last close one
	rival   int         // looks in a row that found the state folder held by another one

	mu          sync.Mutex
	generations map[string]uint64 // the highest one of each role
	doubts      map[string]doubt  // those that were found in use and are not believed, by role
	notes       map[string]string // what status says, by subject
}

func newUpkeep(s *Supervisor, lease *filelease.Lease, lock *os.File) *upkeep {
	state, _ := os.Stat(s.config.StateDir)
	return &upkeep{sup: s, lease: lease, lock: lock, state: state, generations: map[string]uint64{}, doubts: map[string]doubt{}, notes: map[string]string{}}
}

// release ends the hold on the folders.
func (u *upkeep) release() {
	u.lock.Close()
	u.sup.store.Release(context.Background(), u.lease)
}

// run looks now and then until over is closed.
func (u *upkeep) run(over <-chan struct{}) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			u.look()
		}
	}
}

// look compares the folders with what has to be there, and mends them.
func (u *upkeep) look() {
	u.mind("state", u.lookState())
	u.mind("runtime", u.lookRuntime())
}

// mind tells a failure once, until it is another one or over.
func (u *upkeep) mind(subject string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if u.note(subject+" trouble", text) && text != "" {
		u.warn("%s", text)
	}
}

func (u *upkeep) warn(format string, args ...any) {
	u.sup.bus.publish(Event{Type: EventWarning, Text: printable(fmt.Sprintf(format, args...))})
}

// note is what status says of a subject from now on; empty: nothing. It reports
// whether that is news.
func (u *upkeep) note(subject, text string) (news bool) {
	text = printable(text)
	u.mu.Lock()
	defer u.mu.Unlock()
	news = u.notes[subject] != text
	if u.notes[subject] = text; text == "" {
		delete(u.notes, subject)
	}
	return news
}

// warnings are the notes, what is wrong now with the folders first, and those
// of the roles last.
func (u *upkeep) warnings() (all []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	ours := []string{"runtime trouble", "state trouble", "runtime", "state"}
	for _, subject := range ours {
		if text := u.notes[subject]; text != "" {
			all = append(all, text)
		}
	}
	var roles []string
	for subject, text := range u.notes {
		if !slices.Contains(ours, subject) {
			roles = append(roles, text)
		}
	}
	slices.Sort(roles)
	return append(all, roles...)
}

// made says that a folder was made again.
func (u *upkeep) made(subject, text string) {
	u.warn("%s", text)
	u.note(subject, "at "+time.Now().Format(time.DateTime)+": "+text)
}

// lookRuntime makes sure that the folder which we have locked is the one that
// the next supervisor would find.
func (u *upkeep) lookRuntime() error {
	dir := u.sup.config.RuntimeDir
	if leadsTo(dir, u.lock) {
		return nil
	}
	// The roles make what they need in it by themselves, when they miss it.
	if err := prepareFolders(dir, u.sup.config.StateDir); err != nil {
		return fmt.Errorf("the runtime folder was removed and cannot be made again yet: %w", err)
	}
	lock, err := lockFolder(dir)
	var running *AlreadyRunningError
	if errors.As(err, &running) {
		return fmt.Errorf("the runtime folder %s was removed, and another supervisor has made it its own since: stop one of the two", dir)
	}
	if err != nil {
		return err
	}
	u.lock.Close()
	u.lock = lock
	if err := u.sup.saveHomes(); err != nil {
		return err
	}
	u.made("runtime", "the runtime folder "+dir+" was removed while standbyd ran; it is made again")
	return nil
}

// lookState makes sure that the state folder has our lease and no counter that
// is below a generation in use.
func (u *upkeep) lookState() error {
	dir := leasesDir(u.sup.config.StateDir)
	before, serr := os.Lstat(dir)
	u.trusted++
	if serr == nil && u.looked != nil && u.trusted < closeLooks && os.SameFile(before, u.looked) && before.ModTime().Equal(u.looked.ModTime()) {
		return nil
	}
	u.looked, u.trusted = nil, 0
	ctx, cancel := context.WithTimeout(context.Background(), upkeepWait)
	defer cancel()
	was := u.state
	var lost []string
	switch {
	case errors.Is(serr, fs.ErrNotExist):
		lost = append(lost, "the folder of leases")
		if err := u.refurnish(); err != nil {
			return err
		}
	case serr != nil:
		return fmt.Errorf("look at the state folder: %w", serr)
	}
	u.state, _ = os.Stat(u.sup.config.StateDir)
	counters, err := u.raise(ctx)
	lost = append(lost, counters...)
	hold, herr := u.hold(ctx)
	if hold != "" {
		lost = append(lost, hold)
	}
	err = errors.Join(err, herr)
	if len(lost) > 0 {
		u.made("state", u.describe(lost, was))
	}
	if err != nil {
		return err
	}
	if len(lost) == 0 && time.Since(before.ModTime()) > settledAfter {
		u.looked = before
	}
	return nil
}

// describe says what was missing of the state folder, which was that one.
func (u *upkeep) describe(lost []string, was fs.FileInfo) string {
	dir := u.sup.config.StateDir
	what := madeAgain(dir, lost)
	if u.state != nil && was != nil && !os.SameFile(u.state, was) {
		what = "the state folder " + dir + " was removed while standbyd ran; it is made again. The history, deaths and logs in it are lost"
	}
	return what + tokensGoOn
}

const tokensGoOn = "; tokens go on above the last ones"

func madeAgain(stateDir string, lost []string) string {
	return "missing or damaged in the state folder " + stateDir + ", and made again by standbyd: " + strings.Join(lost, ", ")
}

// refurnish makes the folders again that were removed.
func (u *upkeep) refurnish() error {
	err := prepareFolders(u.sup.config.RuntimeDir, u.sup.config.StateDir)
	if err == nil {
		_, err = filelease.Open(u.sup.config.StateDir)
	}
	if err != nil {
		return fmt.Errorf("the state folder was removed and cannot be made again yet; until then tokens would fall after a restart: %w", err)
	}
	return nil
}

// raise brings the counters of generations up to what was handed out, and
// names those that were behind.
func (u *upkeep) raise(ctx context.Context) (behind []string, err error) {
	errs := u.doubted()
	u.mu.Lock()
	generations := maps.Clone(u.generations)
	u.mu.Unlock()
	mend := func(key, what string, n uint64) {
		lost, err := u.mendCounter(ctx, key, what, n)
		if lost != "" {
			behind = append(behind, lost)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(generations)) {
		mend(generationKey(name), generationOf(name), generations[name])
	}
	mend(instanceKey, "the counter of this supervisor's leases", u.lease.Epoch())
	return behind, errors.Join(errs...)
}

// mendCounter makes a counter at least n, and names it if it was damaged or
// behind. Safe for any goroutine.
func (u *upkeep) mendCounter(ctx context.Context, key, what string, n uint64) (lost string, err error) {
	last, err := u.sup.store.LastEpoch(key)
	damaged := errors.Is(err, filelease.ErrUnreadable)
	if damaged || err == nil && last < n {
		if err = u.sup.store.MendEpoch(ctx, key, n); err == nil {
			return kept(what, key+".epoch.bad", damaged), nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("keep %s, %d: %w", what, n, err)
	}
	return "", nil
}

// kept names something that was made again, and where its damaged file is.
func kept(what, file string, damaged bool) string {
	if damaged {
		return what + " (damaged: that file is leases/" + file + " now)"
	}
	return what
}

// hold claims the lease of the only supervisor again if it is lost.
func (u *upkeep) hold(ctx context.Context) (lost string, err error) {
	err = u.sup.store.Verify(ctx, u.lease)
	if err == nil {
		u.rival = 0
		return "", nil
	}
	if errors.Is(err, filelease.ErrUnreadable) {
		if err = u.sup.store.Mend(ctx, u.lease, u.sup.claimant()); err == nil {
			u.rival = 0
			return kept("the lease of this supervisor", instanceKey+".lease.json.bad", true), nil
		}
	}
	var held *filelease.HeldError
	if !errors.Is(err, filelease.ErrLost) && !errors.As(err, &held) {
		return "", fmt.Errorf("look at the state folder: %w", err)
	}
	lease, err := u.sup.store.Claim(ctx, instanceKey, u.sup.claimant())
	if err == nil {
		u.lease, u.rival = lease, 0
		return "the lease of this supervisor", nil
	}
	if !errors.As(err, &held) {
		return "", err
	}
	if u.rival++; u.rival < rivalLooks {
		return "", nil
	}
	return "", fmt.Errorf("the state folder %s was removed or cleaned, and another supervisor, pid %d, holds it since: both may run the same roles; stop one of the two",
		u.sup.config.StateDir, held.Holder.PID)
}

// lockFolder locks a folder for the life of the file that it returns: another
// supervisor there is an *AlreadyRunningError. A child that a killed supervisor
// was about to start holds the lock until its exec: that is waited for.
func lockFolder(path string) (*os.File, error) {
	for end := time.Now().Add(execLimit); ; time.Sleep(execLimit / 200) {
		dir, err := tryLockFolder(path)
		var running *AlreadyRunningError
		if !errors.As(err, &running) || time.Now().After(end) {
			return dir, err
		}
	}
}

// execLimit is more than a child needs from fork to exec on a busy machine.
const execLimit = 2 * time.Second

func tryLockFolder(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("lock the runtime folder: %w", err)
	}
	conn, err := dir.SyscallConn()
	if err == nil {
		cerr := conn.Control(func(fd uintptr) { err = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
		err = errors.Join(err, cerr)
	}
	switch {
	case err == nil && leadsTo(path, dir):
		return dir, nil
	case err == nil:
		err = errors.New("it was replaced meanwhile")
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = &AlreadyRunningError{Folder: path}
		dir.Close()
		return nil, err
	}
	dir.Close()
	return nil, fmt.Errorf("lock the runtime folder %s: %w", path, err)
}

// leadsTo tells whether the path leads to that open file.
func leadsTo(path string, f *os.File) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(now, own)
}
