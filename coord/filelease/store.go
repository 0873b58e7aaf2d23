package filelease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

const maxKey = 100 // bytes

// Store is a folder of leases. All methods are safe for concurrent use, by any
// number of processes.
type Store struct {
	dir     string
	network bool // on a network file system, by the caller's leave
	ttl     time.Duration
	renew   time.Duration
	clock   Clock
	self    proc.Identity
	boot    uint64 // 0: this system names no boots
	timens  uint64
	host    string
	machine string
	run     string // for claimants that name none
	watch   watches

	mu     sync.Mutex
	leases map[string]*Lease // held through this Store, by key
}

// Open opens the store below root; both folders are made (0700) if they are
// not there: look first where root may be mistyped, for in a folder of its own
// nobody excludes anybody.
func Open(root string, opts ...Option) (*Store, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, fmt.Errorf("open lease store %s: %w", root, err)
	}
	dir := filepath.Join(root, "leases")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open lease store: %w", err)
	}
	kind, network, err := networkFS(dir)
	if err != nil {
		return nil, fmt.Errorf("open lease store %s: ask for its file system: %w", dir, err)
	}
	if network && !o.networkFS {
		return nil, fmt.Errorf("open lease store %s (%s): %w: choose a local folder", dir, kind, ErrNetworkFS)
	}
	self, err := proc.Self()
	if err != nil {
		return nil, fmt.Errorf("open lease store: %w", err)
	}
	host, _ := os.Hostname()
	return &Store{
		dir: dir, network: network, ttl: o.ttl, renew: o.renew, clock: o.clock,
		self: self, boot: bootOf(self), timens: timeNamespace(), host: host, machine: machineID(),
		run: randomID(), leases: make(map[string]*Lease),
		watch: watches{since: make(map[string]sighting), ttl: make(map[string]time.Duration)},
	}, nil
}

// machineID tells machines apart that share a folder; empty if unknown.
func machineID() string {
	b, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func randomID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

const (
	leaseSuffix = ".lease.json"
	badSuffix   = ".lease.json.bad"
	epochSuffix = ".epoch"
	lockSuffix  = ".lock"
	liveSuffix  = ".live"
	seenSuffix  = ".seen"
)

// Keys lists the keys that have a lease, or had one, or a counter; sorted.
func (s *Store) Keys() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var keys []string
	for _, e := range entries {
		for _, suffix := range []string{epochSuffix, leaseSuffix, liveSuffix} {
			if key, ok := strings.CutSuffix(e.Name(), suffix); ok && checkKey(key) == nil {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

func (s *Store) file(key, suffix string) string { return filepath.Join(s.dir, key+suffix) }

// checkKey allows what is a plain file name everywhere.
func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("%w %q: want 1 to %d bytes", ErrKey, key, maxKey)
	}
	if key[0] == '.' {
		return fmt.Errorf("%w %q: it must not begin with a dot", ErrKey, key)
	}
	for _, r := range key {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		default:
			return fmt.Errorf("%w %q: only letters, digits, '-', '_' and '.' are allowed", ErrKey, key)
		}
	}
	return nil
}

// critical runs f inside the critical section of key, which all processes
// share. Waiting for it ends with ctx.
func (s *Store) critical(ctx context.Context, key string, f func(section) error) error {
	return s.inside(key, f, func(path string) (*os.File, error) { return acquire(ctx, path) })
}

// tryCritical is ErrBusy if somebody is inside.
func (s *Store) tryCritical(key string, f func(section) error) error {
	return s.inside(key, f, tryAcquire)
}

func (s *Store) inside(key string, f func(section) error, enter func(path string) (*os.File, error)) error {
	if err := checkKey(key); err != nil {
		return err
	}
	for {
		lock, err := enter(s.file(key, lockSuffix))
		if err != nil {
			return s.whyClosed(key, err)
		}
		step("locked")
		err = f(section{lock})
		unlock(lock)
		step("unlocked")
		if errors.Is(err, errAgain) {
			continue
		}
		var held *HeldError
		if err == nil || errors.As(err, &held) {
			return err
		}
		return fmt.Errorf("lease %q: %w", key, err)
	}
}

// whyClosed says what to do about a critical section that cannot be entered.
func (s *Store) whyClosed(key string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("lease %q: %w: the folder must belong to the user that runs this program", key, err)
	}
	if _, serr := os.Stat(s.dir); errors.Is(serr, fs.ErrNotExist) {
		return fmt.Errorf("lease %q: %w (%w): made anew, its epochs begin again", key, errDeleted{s.dir}, err)
	}
	if errors.Is(err, ErrBusy) {
		return fmt.Errorf("lease %q: %w: whoever has the file locked changes the lease, and does not come to an end: it is stopped (kill -CONT), or its disk hangs; `fuser %s` names it", key, err, s.file(key, lockSuffix))
	}
	return fmt.Errorf("lease %q: %w", key, err)
}

// section is the critical section that the caller is in.
type section struct{ lock *os.File }

// errAgain: the lock was deleted under us, so that others may be inside too.
var errAgain = errors.New("the lock file was deleted or replaced")

// check is called before each change of a record: if somebody has deleted
// KEY.lock, the next one is let in on a new file, and our call starts over.
func (c section) check() error {
	same, err := leadsTo(c.lock.Name(), c.lock)
	if err == nil && !same {
		return errAgain
	}
	return err
}

// errDeleted: the whole folder is gone.
type errDeleted struct{ dir string }

func (e errDeleted) Error() string { return "the folder " + e.dir + " was deleted, with all counters" }
