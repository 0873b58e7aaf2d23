package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// garbage is one file to be removed, and what it was when that was decided.
type garbage struct {
	path string // in its folder
	info fs.FileInfo
	why  string
}

// find lists what the configuration calls garbage in one folder, oldest first.
func (c *config) find(ctx context.Context, root *os.Root, now time.Time) ([]garbage, error) {
	var found []garbage
	if err := c.walk(ctx, root, ".", &found); err != nil {
		return nil, err
	}
	// Newest first; the name decides between equals, so that two runs agree.
	slices.SortFunc(found, func(a, b garbage) int {
		return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), strings.Compare(a.path, b.path))
	})
	var out []garbage
	for i, g := range found {
		age := now.Sub(g.info.ModTime())
		switch {
		case c.MaxCount > 0 && i >= c.MaxCount:
			g.why = fmt.Sprintf("beyond the %d newest", c.MaxCount)
		case c.OlderThan > 0 && age > c.OlderThan:
			g.why = fmt.Sprintf("%v old", age.Round(time.Second))
		default:
			continue
		}
		out = append(out, g)
	}
	slices.Reverse(out)
	return out, nil
}

// walk collects the regular files that match. It enters folders, never links.
func (c *config) walk(ctx context.Context, root *os.Root, folder string, found *[]garbage) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	entries, err := readFolder(root, folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := path.Join(folder, e.Name())
		info, err := root.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case info.IsDir() && c.Recursive:
			err := c.walk(ctx, root, p, found)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		case info.Mode().IsRegular() && c.matches(p):
			*found = append(*found, garbage{path: p, info: info})
		}
	}
	return nil
}

// readFolder lists a folder that has been seen to be one, unless a link has
// taken its place.
func readFolder(root *os.Root, folder string) ([]fs.DirEntry, error) {
	seen, err := root.Lstat(folder)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() || !os.SameFile(seen, now) {
		return nil, nil
	}
	return f.ReadDir(-1)
}

func (c *config) matches(p string) bool {
	return slices.ContainsFunc(c.Patterns, func(pattern string) bool {
		subject := p
		if !strings.Contains(pattern, "/") {
			subject = path.Base(p)
		}
		ok, _ := path.Match(pattern, subject) // validated
		return ok
	})
}
