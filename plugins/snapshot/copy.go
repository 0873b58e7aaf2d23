package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// errChanged: the file under a name is not the one that was looked at, or got
// shorter while it was copied.
var errChanged = errors.New("the file was replaced or cut while it was copied")

// copyTree copies what is in from to to, but for what is excluded, and notes it
// in m. It follows no link and leaves neither folder. Every file and folder is
// synced.
func (c *config) copyTree(ctx context.Context, from, to *os.Root, m *manifest) error {
	return c.copyFolder(ctx, from, to, ".", m)
}

func (c *config) copyFolder(ctx context.Context, from, to *os.Root, folder string, m *manifest) error {
	f, err := from.Open(folder)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	var entries []fs.DirEntry
	if err == nil {
		entries, err = f.ReadDir(-1)
	}
	f.Close()
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		p := path.Join(folder, e.Name())
		if pattern := c.excludes(p); pattern != "" {
			m.Skipped = append(m.Skipped, skipped{p, "excluded by " + pattern})
			m.excluded++
			continue
		}
		err := c.copyEntry(ctx, from, to, p, m)
		if errors.Is(err, fs.ErrNotExist) {
			m.vanished++ // since the folder was listed
			m.Skipped = append(m.Skipped, skipped{p, "removed while it was copied"})
			continue
		}
		if err != nil {
			return err
		}
	}
	if err := syncFolder(to, folder); err != nil {
		return err
	}
	if folder == "." {
		return nil
	}
	// Last: a folder may forbid what it holds to be written.
	if err := to.Chmod(folder, info.Mode().Perm()); err != nil {
		return err
	}
	return to.Chtimes(folder, info.ModTime(), info.ModTime())
}

func (c *config) copyEntry(ctx context.Context, from, to *os.Root, p string, m *manifest) error {
	info, err := from.Lstat(p)
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case 0:
		for range 3 {
			err = copyFile(ctx, from, to, p, info, m)
			if !errors.Is(err, errChanged) {
				return err
			}
			if info, err = from.Lstat(p); err != nil {
				return err
			}
			if !info.Mode().IsRegular() {
				return c.copyEntry(ctx, from, to, p, m)
			}
		}
		return fmt.Errorf("copy %s: %w, three times in a row", p, errChanged)
	case fs.ModeDir:
		if err := to.Mkdir(p, 0o700); err != nil {
			return err
		}
		m.Folders = append(m.Folders, p)
		return c.copyFolder(ctx, from, to, p, m)
	case fs.ModeSymlink:
		target, err := from.Readlink(p)
		if err != nil {
			return err
		}
		if err := to.Symlink(target, p); err != nil {
			return err
		}
		m.Links = append(m.Links, link{p, target})
		return nil
	}
	m.Skipped = append(m.Skipped, skipped{p, "neither file, folder nor link: " + info.Mode().Type().String()})
	return nil
}

// copyFile copies up to the size at the moment of opening: what is appended
// afterwards belongs to the next snapshot.
func copyFile(ctx context.Context, from, to *os.Root, p string, seen fs.FileInfo, m *manifest) error {
	// Non-blocking, in case a FIFO has taken the name.
	in, err := from.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, seen) {
		return errChanged // a link, perhaps: never follow it
	}
	out, err := to.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := sha256.New()
	n, err := io.CopyBuffer(io.MultiWriter(out, sum), &untilDone{ctx, io.LimitReader(in, info.Size())}, make([]byte, 256<<10))
	if err != nil {
		return fmt.Errorf("copy %s: %w", p, err)
	}
	if n != info.Size() {
		return errChanged
	}
	if err := out.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return fmt.Errorf("sync the copy of %s: %w", p, err)
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := to.Chtimes(p, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	m.Files = append(m.Files, file{
		Path: p, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Mode: fmt.Sprintf("%04o", info.Mode().Perm()), ModTime: info.ModTime().UTC(),
	})
	m.Bytes += n
	return nil
}

// untilDone is a reader that stops when its context ends: a file may be large.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(b)
}

func syncFolder(root *os.Root, folder string) error {
	f, err := root.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
