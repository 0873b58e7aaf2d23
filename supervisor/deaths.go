package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// keptDeaths is how many deaths of a worker are remembered, keptBytes how
	// much of each of its last lines.
	keptDeaths = 100
	keptBytes  = 512
)

// Death is one end of a worker's process.
type Death struct {
	At       time.Time `json:"at"`
	PID      int       `json:"pid"`
	Cause    string    `json:"cause"` // in words
	Code     *int      `json:"code"`  // null if a signal ended it, or nobody could tell
	Signal   string    `json:"signal,omitempty"`
	UptimeMS int64     `json:"uptime_ms"`
	Leader   bool      `json:"leader"` // it led, or held the lease
	// Ill: standbyd ended it for its health or its watchdog, as Cause says.
	Ill bool `json:"ill,omitempty"`
	// Unseen: nobody watched it end. At is when that was noticed, and the
	// uptime is at most UptimeMS.
	Unseen bool     `json:"unseen,omitempty"`
	Lines  []string `json:"lines"` // the last ones that it printed, oldest first
}

// deathLog is the file with the deaths of one worker, one JSON object a line,
// oldest first. It is used by one goroutine at a time.
type deathLog struct {
	path string
	size int // lines in it; -1: not counted yet
}

// add appends a death. A folder that was removed meanwhile is made again.
func (l *deathLog) add(d Death) error {
	if err := os.MkdirAll(filepath.Dir(l.path), stateMode); err != nil {
		return fmt.Errorf("make the folder of the death histories again: %w", err)
	}
	if l.size < 0 {
		known, _, err := readDeaths(l.path)
		if err != nil {
			return err
		}
		l.size = len(known)
	}
	if l.size >= 2*keptDeaths {
		known, _, err := readDeaths(l.path)
		if err != nil {
			return err
		}
		var text strings.Builder
		for _, d := range append(known, d) {
			line, err := json.Marshal(d)
			if err != nil {
				return err
			}
			text.Write(append(line, '\n'))
		}
		if err := writeWhole(l.path, []byte(text.String()), 0o640); err != nil {
			return err
		}
		l.size = len(known) + 1
		return nil
	}
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("write the death history: %w", err)
	}
	// The newline goes first: half a line that a crash has left ends there.
	_, err = f.Write(append([]byte("\n"), line...))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write the death history: %w", err)
	}
	l.size++
	return nil
}

// readDeaths returns the last deaths in a file, oldest first. Lines that are
// damaged are left out and counted; no file is none.
func readDeaths(path string) (deaths []Death, damaged int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the death history: %w", err)
	}
	defer f.Close()
	err = eachLine(f, func(line []byte) {
		if len(bytes.TrimSpace(line)) == 0 {
			return
		}
		var d Death
		if json.Unmarshal(line, &d) != nil || d.At.IsZero() {
			damaged++
			return
		}
		if deaths = append(deaths, d); len(deaths) >= 2*keptDeaths {
			deaths = append(deaths[:0:0], deaths[len(deaths)-keptDeaths:]...)
		}
	})
	if err != nil {
		return nil, damaged, fmt.Errorf("read the death history %s: %w", path, err)
	}
	if n := len(deaths); n > keptDeaths {
		deaths = deaths[n-keptDeaths:]
	}
	return deaths, damaged, nil
}

// exit is the death as what a worker's row shows of it.
func (d Death) exit() *Exit {
	e := &Exit{At: d.At, PID: d.PID, Code: d.Code, Signal: d.Signal, LastLines: d.Lines}
	if d.Ill {
		e.Cause = d.Cause
	}
	return e
}

// Deaths returns the last deaths of a worker ("kv/0", "kv-0", "kv/leader"),
// oldest first, at most 100. They outlive the supervisor.
func (s *Supervisor) Deaths(target string) (worker string, deaths []Death, err error) {
	h, err := s.DeathHistory(target)
	return h.Worker, h.Deaths, err
}

// DeathHistory is what the file of a worker's deaths has.
type DeathHistory struct {
	Worker  string
	Deaths  []Death // the last ones, oldest first, at most 100
	Damaged int     // lines that are none, and are left out
}

// DeathHistory is Deaths, and says what of the file is damaged.
func (s *Supervisor) DeathHistory(target string) (DeathHistory, error) {
	r, i, err := s.find(target)
	if err != nil {
		return DeathHistory{}, err
	}
	status := r.published.Load()
	name := status.Leader
	if i >= 0 {
		name = status.Workers[i].Name
	}
	if name == "" {
		return DeathHistory{}, fmt.Errorf("%s: %w", target, ErrNoLeader)
	}
	h := DeathHistory{Worker: name}
	h.Deaths, h.Damaged, err = readDeaths(r.paths.deaths(name))
	return h, err
}

// clipped are the last words of a death, cut to what is kept.
func clipped(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = clip(line, keptBytes)
	}
	return out
}

func deathsDir(stateDir string) string { return filepath.Join(stateDir, "deaths") }
