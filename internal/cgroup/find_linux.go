//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mount is one cgroup v2 mount: root is the cgroup that is at point.
type mount struct{ root, point string }

// mounts reads the text of a mountinfo.
func mounts(text string) (list []mount) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		sep := -1
		for i := 6; i < len(fields); i++ { // optional fields end with a dash
			if fields[i] == "-" {
				sep = i
				break
			}
		}
		if sep < 0 || len(fields) < sep+2 || fields[sep+1] != "cgroup2" {
			continue
		}
		list = append(list, mount{unescape(fields[3]), unescape(fields[4])})
	}
	return list
}

// unescape undoes \040 and its like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// path reads the cgroup v2 of a process from the text of /proc/PID/cgroup.
func path(text string) (string, bool) {
	for line := range strings.Lines(text) {
		if p, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "0::"); ok {
			return p, true
		}
	}
	return "", false
}

// folder is where the cgroup p is seen.
func folder(list []mount, p string) (string, bool) {
	for _, m := range list {
		rel, err := filepath.Rel(m.root, p)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return filepath.Join(m.point, rel), true
		}
	}
	return "", false
}

// own is the folder of this process's cgroup, and the mount's.
func own() (dir, top string, err error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNone, err)
	}
	list := mounts(string(info))
	if len(list) == 0 {
		return "", "", fmt.Errorf("%w: it is not mounted", ErrNone)
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNone, err)
	}
	p, ok := path(string(text))
	if !ok {
		return "", "", fmt.Errorf("%w: this process is in none", ErrNone)
	}
	dir, ok = folder(list, p)
	if !ok {
		return "", "", fmt.Errorf("%w: this process's, %s, is outside of what is mounted", ErrNone, p)
	}
	for _, m := range list {
		if dir == m.point || strings.HasPrefix(dir, strings.TrimSuffix(m.point, "/")+"/") {
			top = m.point
		}
	}
	return dir, top, nil
}

// Available says whether the machine has the controllers in its cgroup v2 at
// all: ErrNone or ErrController if not, whoever asks.
func Available(controllers []string) error {
	if len(controllers) == 0 {
		return nil
	}
	_, top, err := own()
	if err != nil {
		return err
	}
	return offers(top, controllers)
}

// offers checks that the cgroup may use and pass on the controllers.
func offers(dir string, controllers []string) error {
	have, err := words(dir, "cgroup.controllers")
	if err != nil {
		return err
	}
	for _, c := range controllers {
		if !have[c] {
			there := strings.Join(sortedWords(have), " ")
			if there == "" {
				there = "none"
			}
			return fmt.Errorf("%w: %s is not among those of cgroup v2 in %s (%s)", ErrController, c, dir, there)
		}
	}
	return nil
}
