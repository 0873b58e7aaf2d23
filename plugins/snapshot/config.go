package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/standbyd/standbyd/plugins"
)

// config is the plugin's table. Relative folders are relative to the plugin's
// working directory, which is the folder of the configuration file.
type config struct {
	Source  string        // the folder to copy; may appear later
	Dir     string        // where the snapshots are; made if it is missing
	Every   time.Duration // from one snapshot to the next
	Keep    int           // snapshots kept
	Exclude []string      // patterns of path.Match: on the name, or with '/' on the path in the source
}

const shortestEvery = 100 * time.Millisecond

// unfinished is what a file is usually called that a program writes beside its
// place and renames when it is whole.
const unfinished = ".*.tmp"

func readConfig(table plugins.Table) (config, error) {
	c := config{Every: time.Minute, Keep: 5, Exclude: []string{unfinished}}
	if err := table.Decode(&c); err != nil {
		return c, err
	}
	switch {
	case c.Source == "":
		return c, errors.New(`config key "source" is missing: the folder to copy`)
	case c.Dir == "":
		return c, errors.New(`config key "dir" is missing: the folder for the snapshots`)
	case c.Every < shortestEvery:
		return c, fmt.Errorf(`config key "every": %v is too short, the least is %v`, c.Every, shortestEvery)
	case c.Keep < 1:
		return c, fmt.Errorf(`config key "keep": %d snapshots cannot be kept, the least is 1`, c.Keep)
	}
	for i, p := range c.Exclude {
		key := fmt.Sprintf("exclude[%d]", i)
		if p == "" {
			return c, fmt.Errorf("config key %q is empty", key)
		}
		if _, err := path.Match(p, "x"); err != nil {
			return c, fmt.Errorf("config key %q: %q is no pattern: %w", key, p, err)
		}
		if path.IsAbs(p) || strings.Contains("/"+p+"/", "/../") {
			return c, fmt.Errorf("config key %q: %q can match nothing; patterns are relative to the source", key, p)
		}
	}
	for _, k := range []struct {
		key  string
		path *string
	}{{"source", &c.Source}, {"dir", &c.Dir}} {
		abs, err := filepath.Abs(*k.path)
		if err != nil {
			return c, fmt.Errorf("config key %q: %w", k.key, err)
		}
		*k.path = abs
		fi, err := os.Stat(abs)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return c, fmt.Errorf("config key %q: %w", k.key, err)
		case !fi.IsDir():
			return c, fmt.Errorf("config key %q: %s is not a folder", k.key, abs)
		}
	}
	if within(resolve(c.Dir), resolve(c.Source)) {
		return c, fmt.Errorf(`config key "dir": %s is inside source %s; a snapshot would copy the snapshots: choose a folder beside it`, c.Dir, c.Source)
	}
	return c, nil
}

// excludes returns the pattern that leaves p out, or "".
func (c *config) excludes(p string) string {
	for _, pattern := range c.Exclude {
		subject := p
		if !strings.Contains(pattern, "/") {
			subject = path.Base(p)
		}
		if ok, _ := path.Match(pattern, subject); ok { // validated
			return pattern
		}
	}
	return ""
}

// resolve follows the links of the part of path that exists.
func resolve(path string) string {
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if p == filepath.Dir(p) {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
