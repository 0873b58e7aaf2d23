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
	"strings"
	"sync"

	"github.com/standbyd/standbyd/internal/proc"
)

const maxKey = 100 // bytes

// Store is a folder of leases. All methods are safe for concurrent use, by any
// number of processes.
type Store struct {
	dir     string
	network bool // on a network file system, by the caller's leave
	self    proc.Identity
	host    string
	machine string
	run     string // for claimants that name none

	mu     sync.Mutex
	leases map[string]*Lease // held through this Store, by key
}

// Option changes what Open does.
type Option func(*options)

type options struct {
	networkFS bool
}

// AllowNetworkFS makes Open accept a network file system. Locks there are as
// good as its server makes them.
func AllowNetworkFS() Option { return func(o *options) { o.networkFS = true } }

// Open opens the store below root; both folders are made (0700) if they are
// not there.
func Open(root string, opts ...Option) (*Store, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
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
	host, _ := os.Hostname() // for people only
	return &Store{
		dir: dir, network: network, self: self, host: host, machine: machineID(),
		run: randomID(), leases: make(map[string]*Lease),
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

// Keys lists the keys that have a lease or a counter, sorted.
func (s *Store) Keys() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var keys []string
	for _, e := range entries { // sorted, so that a key's files are neighbours, nearly
		key, ok := strings.CutSuffix(e.Name(), epochSuffix)
		if ok && checkKey(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

const (
	leaseSuffix = ".lease.json"
	epochSuffix = ".epoch"
	lockSuffix  = ".lock"
	liveSuffix  = ".live"
)

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
func (s *Store) critical(ctx context.Context, key string, f func() error) error {
	if err := checkKey(key); err != nil {
		return err
	}
	path := s.file(key, lockSuffix)
	lock, err := acquire(ctx, path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("lease %q: %w: the folder must belong to the user that runs this program", key, err)
		}
		return fmt.Errorf("lease %q: %w", key, err)
	}
	defer lock.Close()
	if err := f(); err != nil {
		var held *HeldError
		if errors.As(err, &held) {
			return err
		}
		return fmt.Errorf("lease %q: %w", key, err)
	}
	return nil
}
