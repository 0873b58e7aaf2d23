package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/standbyd/standbyd/plugins"
)

type collector struct {
	plugins.Duty
	conf config
}

func newCollector() *collector {
	c := &collector{}
	c.Start = c.lead
	return c
}

func (*collector) Describe() plugins.Description {
	return plugins.Description{Name: "gc", Summary: "removes files that are too old or too many while the role leads"}
}

func (c *collector) Configure(_ context.Context, table plugins.Table) (err error) {
	c.conf, err = readConfig(table)
	return err
}

// lead collects at once, and then every so often until the leadership ends.
func (c *collector) lead(ctx context.Context, t plugins.Transition) error {
	for {
		for _, folder := range c.conf.Folders {
			if err := c.collect(ctx, folder); err != nil && ctx.Err() == nil {
				log.Printf("collection in %q stopped: %v", folder, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.conf.Every):
		}
	}
}

// collect removes the garbage of one folder and reports it.
func (c *collector) collect(ctx context.Context, folder string) error {
	root, err := openFolder(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing there yet
	}
	if err != nil {
		return err
	}
	defer root.Close()
	list, err := c.conf.find(ctx, root, time.Now())
	if err != nil {
		return err
	}
	files, bytes := 0, int64(0)
	defer func() {
		if files == 0 {
			return
		}
		done := "removed"
		if c.conf.DryRun {
			done = "dry run: would remove"
		}
		log.Printf("%s %d files, %d bytes, in %q", done, files, bytes, folder)
	}()
	for _, g := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if c.conf.DryRun {
			log.Printf("dry run: would remove %q (%s)", filepath.Join(folder, g.path), g.why)
		} else {
			removed, err := c.remove(root, g)
			if err != nil {
				return err
			}
			if !removed {
				continue
			}
			log.Printf("removed %q (%s)", filepath.Join(folder, g.path), g.why)
		}
		files++
		bytes += g.info.Size()
	}
	return nil
}

// remove removes one file if it still is what it was when it was judged, and
// the role still leads. A file that somebody wrote to since is not garbage.
func (c *collector) remove(root *os.Root, g garbage) (bool, error) {
	// Through the folder that holds it, so that a link that took the place of
	// a folder on the way leads nowhere.
	parent, err := realParent(root, g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer parent.Close()
	base := filepath.Base(g.path)
	now, err := parent.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !now.Mode().IsRegular() || !os.SameFile(now, g.info) || !now.ModTime().Equal(g.info.ModTime()) || now.Size() != g.info.Size() {
		return false, nil
	}
	if err := c.Check(); err != nil {
		return false, err
	}
	if err := parent.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}

// realParent opens the folder that holds p, step by step, and refuses a link
// in any of them.
func realParent(root *os.Root, p string) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(p)
	if dir == "." {
		return at, nil
	}
	for _, step := range strings.Split(filepath.ToSlash(dir), "/") {
		next, err := openStep(at, step)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func openStep(at *os.Root, step string) (*os.Root, error) {
	seen, err := at.Lstat(step)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%q is no folder any more: %w", step, fs.ErrNotExist)
	}
	next, err := at.OpenRoot(step)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(seen, now) {
		next.Close()
		return nil, fmt.Errorf("%q was replaced: %w", step, fs.ErrNotExist)
	}
	return next, nil
}
