package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/standbyd/standbyd/internal/rolesock"
)

// furnish makes, or makes again, what the role has in its folder besides the
// segment: the socket, the FIFOs and who reads them, the hooks' folders.
func (r *roleLoop) furnish() error {
	if r.socket != nil {
		r.socket.Close()
		r.socket = nil
	}
	uid, gid := r.user.owner()
	if err := os.MkdirAll(rolesDir(r.sup.config.RuntimeDir), passage()); err != nil {
		return fmt.Errorf("make the folder of role %s: %w", r.config.Name, err)
	}
	if err := os.MkdirAll(r.paths.dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of role %s: %w", r.config.Name, err)
	}
	if uid >= 0 {
		if err := os.Chown(r.paths.dir, uid, gid); err != nil {
			return fmt.Errorf("give the folder of role %s to its user: %w", r.config.Name, err)
		}
	}
	socket, err := rolesock.Listen(r.paths.socket(), uid, gid)
	if err != nil {
		return atRuntime{fmt.Errorf("role %s: %w", r.config.Name, err)}
	}
	r.socket = socket
	go r.listenToSocket(socket)
	if err := r.openOutputs(uid, gid); err != nil {
		return err
	}
	return r.furnishHooks()
}

// furnishHooks makes the hooks' folders.
func (r *roleLoop) furnishHooks() error {
	if len(r.config.Hooks) == 0 {
		return nil
	}
	if err := os.MkdirAll(r.paths.plugins(), 0o700); err != nil {
		return fmt.Errorf("make the plugins' folder of role %s: %w", r.config.Name, err)
	}
	for i := range r.config.Hooks {
		if err := os.MkdirAll(r.paths.hookDir(i), 0o700); err != nil {
			return fmt.Errorf("make the plugins' folder of role %s: %w", r.config.Name, err)
		}
	}
	return nil
}

// strip lets go of what furnish made, and leaves the files. end: nobody is at
// work any more, and the log reader ends.
func (r *roleLoop) strip(end bool) {
	r.forget()
	if r.socket != nil {
		r.socket.Close()
		r.socket = nil
	}
	r.closeOutputs(end)
}

// clear removes what the role has in the runtime folder, at its orderly end.
func (r *roleLoop) clear() {
	r.letGo(true)
	r.warnOf(os.RemoveAll(r.paths.dir))
}

// letGo is strip, and lets go of the segment and the listeners too.
func (r *roleLoop) letGo(end bool) {
	r.strip(end)
	if r.seg != nil {
		r.seg.close()
		r.seg = nil
	}
	for i, h := range r.listeners {
		if h != nil {
			h.Close(end)
			r.listeners[i] = nil
		}
	}
}

// warnOf tells why something in the role's folder could not be removed.
func (r *roleLoop) warnOf(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.emit(Event{Type: EventWarning, Text: fmt.Sprintf("remove the folder of role %s: %v", r.config.Name, err)})
	}
}

// noteFolder remembers what is in the role's folder before anything is made there.
func (r *roleLoop) noteFolder() {
	entries, err := os.ReadDir(r.paths.dir)
	r.before = make(map[string]bool, len(entries))
	for _, e := range entries {
		r.before[e.Name()] = true
	}
	r.hadFolder = !errors.Is(err, fs.ErrNotExist)
}

// abandon lets go of everything and removes nothing but what open has made: for
// a role that could not begin. What was there before may be somebody's, and what
// an earlier supervisor has left tells the next one of generations and deaths.
func (r *roleLoop) abandon() {
	adopted := r.st.processes() > 0
	r.letGo(!adopted)
	for i, p := range r.posts {
		if p.life != nil {
			r.posts[i].life = nil
			p.life.release()
		}
	}
	if adopted || r.before == nil {
		return
	}
	entries, _ := os.ReadDir(r.paths.dir)
	for _, e := range entries {
		if path := filepath.Join(r.paths.dir, e.Name()); !r.before[e.Name()] {
			r.warnOf(os.RemoveAll(path))
		}
	}
	if !r.hadFolder {
		r.warnOf(os.Remove(r.paths.dir))
	}
}
