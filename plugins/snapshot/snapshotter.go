package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"time"

	"github.com/standbyd/standbyd/plugins"
)

// retryAfter is when a snapshot that failed is tried again, if the next one is
// not due earlier.
const retryAfter = 10 * time.Second

// tries is how often one snapshot is begun anew because files were removed
// from the source meanwhile. The last one is taken without them.
const tries = 5

type snapshotter struct {
	plugins.Duty
	conf config
}

func newSnapshotter() *snapshotter {
	s := &snapshotter{}
	s.Start = s.lead
	return s
}

func (*snapshotter) Describe() plugins.Description {
	return plugins.Description{Name: "snapshot", Summary: "copies a folder into a rotated set of snapshots while the role leads"}
}

func (s *snapshotter) Configure(_ context.Context, table plugins.Table) (err error) {
	s.conf, err = readConfig(table)
	return err
}

// lead makes snapshots until the leadership ends. The first is due when the
// newest one there is older than every, also if another leadership made it.
func (s *snapshotter) lead(ctx context.Context, t plugins.Transition) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.conf.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder for snapshots: %w", err)
	}
	dir, err := os.OpenRoot(s.conf.Dir)
	if err != nil {
		return fmt.Errorf("open the folder for snapshots: %w", err)
	}
	defer dir.Close()
	s.clear(dir)

	wait := s.firstWait(dir, time.Now())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		began := time.Now()
		n, m, err := s.take(ctx, dir, t, began)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			log.Printf("snapshot failed: %v", err)
			wait = min(s.conf.Every, retryAfter)
			continue
		}
		log.Printf("%s: %d files, %d bytes, in %v", n, len(m.Files), m.Bytes, time.Since(began).Round(time.Millisecond))
		if m.vanished > 0 {
			log.Printf("%s: %d files were removed while it was made, in each of %d tries: it may not fit together", n, m.vanished, tries)
		}
		if err := s.prune(ctx, dir); err != nil && ctx.Err() == nil {
			log.Printf("removal of old snapshots failed: %v", err)
		}
		wait = max(0, s.conf.Every-time.Since(began))
	}
}

// firstWait is how long the newest snapshot is still good for. A clock that
// was set back never makes it more than every.
func (s *snapshotter) firstWait(dir *os.Root, now time.Time) time.Duration {
	whole, _, err := list(dir)
	if err != nil || len(whole) == 0 {
		return 0
	}
	age := now.Sub(whole[len(whole)-1].at)
	return min(max(0, s.conf.Every-age), s.conf.Every)
}

// take makes one snapshot: built beside its name, synced, then renamed.
func (s *snapshotter) take(ctx context.Context, dir *os.Root, t plugins.Transition, now time.Time) (name, *manifest, error) {
	n, err := s.next(dir, t, now)
	if err != nil {
		return n, nil, err
	}
	from, err := os.OpenRoot(s.conf.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil, fmt.Errorf("there is nothing to copy yet: %w", err)
	}
	if err != nil {
		return n, nil, fmt.Errorf("open source: %w", err)
	}
	defer from.Close()

	if err := s.Check(); err != nil {
		return n, nil, err
	}
	temp := building + n.String()
	var m *manifest
	for try := 1; ; try++ {
		if err := dir.Mkdir(temp, 0o700); err != nil {
			return n, nil, fmt.Errorf("begin a snapshot: %w", err)
		}
		m = &manifest{
			Format: 1, Role: t.Role, Token: t.Token, Worker: t.Worker, Time: n.at, Source: s.conf.Source,
			Files: []file{}, Folders: []string{}, Links: []link{}, Skipped: []skipped{},
		}
		err = s.build(ctx, dir, temp, from, m)
		if err != nil || m.vanished == 0 || try == tries {
			break
		}
		// What has gone may have been replaced by what came after the folder
		// was listed: a journal by a snapshot of its own, say.
		if err = s.Check(); err == nil {
			err = removeTree(dir, temp)
		}
		if err != nil {
			break
		}
	}
	if err == nil && m.excluded > 0 && len(m.Files)+len(m.Links)+len(m.Folders) == 0 {
		err = errors.New("there is nothing to copy yet: everything in the source is excluded")
	}
	if err == nil {
		_, err = s.next(dir, t, n.at) // has a later leader been here meanwhile?
	}
	if err == nil {
		// Whole and on the disk: only now may it have its name.
		if err = s.Check(); err == nil {
			err = dir.Rename(temp, n.String())
		}
	}
	if err != nil {
		if ctx.Err() == nil && s.Check() == nil {
			removeTree(dir, temp)
		}
		return n, nil, err
	}
	return n, m, syncFolder(dir, ".")
}

func (s *snapshotter) build(ctx context.Context, dir *os.Root, temp string, from *os.Root, m *manifest) error {
	root, err := dir.OpenRoot(temp)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir(filesName, 0o700); err != nil {
		return err
	}
	to, err := root.OpenRoot(filesName)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := s.conf.copyTree(ctx, from, to, m); err != nil {
		return err
	}
	if err := m.write(root); err != nil {
		return err
	}
	return syncFolder(root, ".")
}

// next names the snapshot after those that are there, and refuses a token that
// is lower than one of them, or a folder that another role uses.
func (s *snapshotter) next(dir *os.Root, t plugins.Transition, now time.Time) (name, error) {
	n := name{at: now.UTC().Truncate(time.Millisecond), token: t.Token}
	whole, _, err := list(dir)
	if err != nil || len(whole) == 0 {
		return n, err
	}
	newest := whole[len(whole)-1]
	if newest.token > t.Token {
		return n, fmt.Errorf("%s has %s, of a later leadership than token %s: another leader writes there, or the role's tokens began anew; in that case move the old snapshots away",
			s.conf.Dir, newest, t.Token)
	}
	if m, err := readManifest(dir, newest); err == nil && m.Role != t.Role {
		return n, fmt.Errorf("%s has snapshots of role %s: give role %s a folder of its own", s.conf.Dir, m.Role, t.Role)
	}
	if newest.token == t.Token && !n.at.After(newest.at) {
		n.at = newest.at.Add(time.Millisecond) // the clock was set back
	}
	return n, nil
}

// prune removes the oldest snapshots beyond keep. A snapshot loses its name
// before it loses anything else.
func (s *snapshotter) prune(ctx context.Context, dir *os.Root) error {
	whole, _, err := list(dir)
	if err != nil {
		return err
	}
	for _, n := range whole[:max(0, len(whole)-s.conf.Keep)] {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.Check(); err != nil {
			return err
		}
		if err := dir.Rename(n.String(), leaving+n.String()); err != nil {
			return err
		}
		if err := removeTree(dir, leaving+n.String()); err != nil {
			return err
		}
		log.Printf("removed %s", n)
	}
	return nil
}

// clear removes what a crash left half built or half removed.
func (s *snapshotter) clear(dir *os.Root) {
	_, leftovers, err := list(dir)
	if err != nil {
		log.Print(err)
		return
	}
	for _, l := range leftovers {
		if s.Check() != nil {
			return
		}
		if err := removeTree(dir, l); err != nil {
			log.Printf("removal of the unfinished %s failed: %v", l, err)
			continue
		}
		log.Printf("removed the unfinished %s", l)
	}
}

// removeTree is RemoveAll that gets past folders which were copied with
// permissions that forbid it.
func removeTree(dir *os.Root, p string) error {
	err := dir.RemoveAll(p)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := dir.OpenRoot(p)
	if err != nil {
		return err
	}
	_ = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(p, 0o700)
		}
		return nil
	})
	root.Close()
	return dir.RemoveAll(p)
}
