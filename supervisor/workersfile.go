package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// workersFile is workers.json in a role's folder: the processes of the role,
// each listed before it executes its program. The next supervisor adopts
// exactly these.
type workersFile struct {
	Role       string         `json:"role"`
	Generation uint64         `json:"generation"`
	Segment    string         `json:"segment"`
	StopSignal string         `json:"stop_signal"`
	Workers    []listedWorker `json:"workers"`
}

type listedWorker struct {
	Index     int           `json:"index"`
	Name      string        `json:"name"`
	Identity  proc.Identity `json:"identity"`
	StartedAt time.Time     `json:"started_at"`
	Restarts  int           `json:"restarts"`
	Cgroup    string        `json:"cgroup,omitempty"` // folder; empty: none of its own
	// Ready: it has said so once, or has shown what the role's ready asks for.
	Ready bool `json:"ready,omitempty"`
	// Settings tells what it was started with from other settings; empty in a
	// list of an earlier version.
	Settings string `json:"settings"`
}

// saveWorkers writes the list anew: a new file, then a rename. Not synced: the
// list is of no use after a reboot.
func (r *roleLoop) saveWorkers() error {
	list := workersFile{Role: r.config.Name, StopSignal: r.config.StopSignal, Workers: []listedWorker{}}
	if r.seg != nil {
		list.Generation, list.Segment = r.seg.generation(), r.seg.seg.Path()
	}
	for i, p := range r.posts {
		if p.life == nil {
			continue
		}
		w := &r.st.workers[i]
		l := listedWorker{Index: i, Name: w.name, Identity: p.life.process.Identity(), StartedAt: p.life.started, Restarts: w.restarts, Ready: r.shownReady(w), Settings: p.life.settings}
		if p.life.group != nil {
			l.Cgroup = p.life.group.Path()
		}
		list.Workers = append(list.Workers, l)
	}
	b, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return writeWhole(r.paths.workers(), append(b, '\n'), 0o600)
}

// shownReady is what the next supervisor cannot learn from the segment.
func (r *roleLoop) shownReady(w *worker) bool {
	if r.config.Ready.IsSet() {
		return w.vitals.admitted
	}
	return w.vitals.said
}

// writeWhole replaces a file so that a reader sees the old or the new one. An
// error names that file, and not the one that would have taken its place.
func writeWhole(path string, b []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: withoutPath(err)}
	}
	_, err = f.Write(b)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), mode)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return &fs.PathError{Op: "write", Path: path, Err: withoutPath(err)}
	}
	return nil
}

// withoutPath is what went wrong, without the file with which.
func withoutPath(err error) error {
	var at *fs.PathError
	var between *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &between):
		return between.Err
	}
	return err
}

// readWorkers reads the list that an earlier supervisor left. No file is an
// empty list. With an error come the entries that can be believed, if any.
func readWorkers(path string) (workersFile, error) {
	var list workersFile
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		return workersFile{}, fmt.Errorf("read the list of workers %s: %w", path, err)
	}
	var doubtful []string
	list.Workers, doubtful = credible(filepath.Base(filepath.Dir(path)), list.Workers)
	if len(doubtful) > 0 {
		return list, fmt.Errorf("read the list of workers %s: not believed: %s", path, strings.Join(doubtful, ", "))
	}
	return list, nil
}

// credible leaves out what no supervisor has written: places that a role
// cannot have, and a place or a process for the second time. The file is where
// the role's user can write.
func credible(role string, listed []listedWorker) (kept []listedWorker, doubtful []string) {
	for _, w := range listed {
		again := func(k listedWorker) bool { return k.Index == w.Index || k.Identity == w.Identity }
		if w.Index < 0 || w.Index >= maxWorkers || w.Name != workerName(role, w.Index) || slices.ContainsFunc(kept, again) {
			doubtful = append(doubtful, fmt.Sprintf("%q as number %d with %v", w.Name, w.Index, w.Identity))
			continue
		}
		kept = append(kept, w)
	}
	return kept, doubtful
}

// release gives back the worker's last process.
func (r *roleLoop) release(i int) {
	l := r.posts[i].life
	if l == nil {
		return
	}
	r.posts[i].life = nil
	l.release()
	if err := r.saveWorkers(); err != nil {
		r.emit(Event{Type: EventWarning, Text: err.Error()})
	}
}
