package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/standbyd/standbyd/plugins"
)

// config is the plugin's table. Relative folders are relative to the plugin's
// working directory, which is the folder of the configuration file.
type config struct {
	Folders   []string      // where files are removed; may appear later; no component is a link
	Patterns  []string      // of path.Match: on the file's name, or with '/' on its path in the folder
	Recursive bool          // folders in the folders too
	OlderThan time.Duration `toml:"older_than"` // by modification time; 0: age does not count
	MaxCount  int           `toml:"max_count"`  // files kept in each of the folders, the newest; 0: any number
	Every     time.Duration
	DryRun    bool `toml:"dry_run"`
}

const shortestEvery = 100 * time.Millisecond

func readConfig(table plugins.Table) (config, error) {
	c := config{Every: 10 * time.Minute}
	if err := table.Decode(&c); err != nil {
		return c, err
	}
	_, aged := table["older_than"]
	_, counted := table["max_count"]
	switch {
	case len(c.Folders) == 0:
		return c, errors.New(`config key "folders" is missing: where files are to be removed`)
	case len(c.Patterns) == 0:
		return c, errors.New(`config key "patterns" is missing: which files are to be removed; ["*"] is all of them`)
	case !aged && !counted:
		return c, errors.New(`config needs "older_than" or "max_count": nothing says which files are garbage`)
	case aged && c.OlderThan <= 0:
		return c, fmt.Errorf(`config key "older_than": %v must be positive`, c.OlderThan)
	case counted && c.MaxCount < 1:
		return c, fmt.Errorf(`config key "max_count": %d must be positive; to remove every file use a short "older_than"`, c.MaxCount)
	case c.Every < shortestEvery:
		return c, fmt.Errorf(`config key "every": %v is too short, the least is %v`, c.Every, shortestEvery)
	}
	for i, folder := range c.Folders {
		key := fmt.Sprintf("folders[%d]", i)
		if folder == "" {
			return c, fmt.Errorf("config key %q is empty", key)
		}
		abs, err := filepath.Abs(folder)
		if err != nil {
			return c, fmt.Errorf("config key %q: %w", key, err)
		}
		if abs == string(filepath.Separator) {
			return c, fmt.Errorf("config key %q: refusing to remove files in %q", key, abs)
		}
		c.Folders[i] = filepath.Clean(folder) // relative ones stay so: the way to the working directory is not judged
		root, err := openFolder(c.Folders[i])
		switch {
		case err == nil:
			root.Close()
		case !errors.Is(err, fs.ErrNotExist):
			return c, fmt.Errorf("config key %q: %w", key, err)
		}
	}
	for i, p := range c.Patterns {
		key := fmt.Sprintf("patterns[%d]", i)
		if p == "" {
			return c, fmt.Errorf("config key %q is empty", key)
		}
		if _, err := filepath.Match(p, "x"); err != nil {
			return c, fmt.Errorf("config key %q: %q is no pattern: %w", key, p, err)
		}
		if filepath.IsAbs(p) || strings.Contains("/"+p+"/", "/../") {
			return c, fmt.Errorf("config key %q: %q would leave the folder; patterns are relative to it", key, p)
		}
		if strings.Contains(p, "/") && !c.Recursive {
			return c, fmt.Errorf(`config key %q: %q looks into folders; that needs recursive = true`, key, p)
		}
	}
	return c, nil
}
