package supervisor

import (
	"fmt"
	"os"

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
	r.strip(true)
	if r.seg != nil {
		r.seg.close()
		r.seg = nil
	}
	for i, h := range r.listeners {
		if h != nil {
			h.Close(true)
			r.listeners[i] = nil
		}
	}
	if err := os.RemoveAll(r.paths.dir); err != nil {
		r.emit(Event{Type: EventWarning, Text: fmt.Sprintf("remove the folder of role %s: %v", r.config.Name, err)})
	}
}

// abandon lets go of everything and removes nothing but what is worthless
// without us: for a role that could not begin.
func (r *roleLoop) abandon() {
	adopted := r.st.processes() > 0
	if !adopted {
		r.clear()
		return
	}
	r.strip(false)
	if r.seg != nil {
		r.seg.close()
		r.seg = nil
	}
	for i, p := range r.posts {
		if p.life != nil {
			r.posts[i].life = nil
			p.life.release()
		}
	}
	for i, h := range r.listeners {
		if h != nil {
			h.Close(false)
			r.listeners[i] = nil
		}
	}
}
