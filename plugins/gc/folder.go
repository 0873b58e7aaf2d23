package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// openFolder opens a folder without following a link in any component of the
// path as it is written: below the working directory if it is relative.
func openFolder(folder string) (*os.Root, error) {
	if err := plainPath(folder); err != nil {
		return nil, err // names the component
	}
	root, err := openPlain(folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if again := plainPath(folder); again != nil {
		err = again
	}
	return nil, fmt.Errorf("%q: left alone: %w", folder, err)
}

// plainPath says which component of the path is no folder, if one is.
func plainPath(folder string) error {
	for i := 1; i <= len(folder); i++ {
		if i < len(folder) && folder[i] != filepath.Separator {
			continue
		}
		info, err := os.Lstat(folder[:i])
		switch {
		case err != nil:
			return err
		case info.Mode().Type() == fs.ModeSymlink:
			return fmt.Errorf("%q is a link: left alone; write the path that it leads to", folder[:i])
		case !info.IsDir():
			return fmt.Errorf("%q is not a folder but %s: left alone", folder[:i], kind(info.Mode()))
		}
	}
	return nil
}

// walkPlain is openPlain in steps, each of which is compared with what was seen.
func walkPlain(folder string) (*os.Root, error) {
	start, rest := ".", folder
	if filepath.IsAbs(folder) {
		start, rest = "/", strings.TrimLeft(folder, "/")
	}
	for rest == ".." || strings.HasPrefix(rest, "../") {
		start, rest = start+"/..", strings.TrimPrefix(rest[2:], "/")
	}
	at, err := os.OpenRoot(start)
	if err != nil {
		return nil, err
	}
	if rest == "" || rest == "." {
		return at, nil
	}
	for _, step := range strings.Split(rest, "/") {
		next, err := openStep(at, step)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
