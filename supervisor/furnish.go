package supervisor

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/internal/rolesock"
)

// furnish makes, or makes again, what the role has in its folder besides the
// segment: the socket, the FIFOs with their captures, the hooks' folders.
func (r *roleLoop) furnish() error {
	r.strip()
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
		return fmt.Errorf("role %s: %w", r.config.Name, err)
	}
	r.socket = socket
	go r.listenToSocket(socket)
	o := capture.Options{MaxBytes: r.config.LogMaxBytes, Keep: r.config.LogKeep}
	for i, p := range r.posts {
		if p.capture, err = r.capture(r.paths.fifo(i), r.paths.log(r.st.workers[i].name), o, uid, gid); err != nil {
			return err
		}
	}
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
	// The plugins' lines come over Note; the FIFO is there because a capture
	// has one.
	c, err := r.capture(filepath.Join(r.paths.plugins(), "log.fifo"), r.paths.pluginLog(r.config.Name), o, -1, -1)
	if err == nil {
		r.pluginLog.Store(c)
	}
	return err
}

func (r *roleLoop) capture(fifo, log string, o capture.Options, uid, gid int) (*capture.Capture, error) {
	if err := capture.MakeFIFO(fifo, uid, gid); err != nil {
		return nil, err
	}
	return capture.Start(fifo, log, o)
}

// strip lets go of what furnish made, and leaves the files.
func (r *roleLoop) strip() {
	if r.socket != nil {
		r.socket.Close()
		r.socket = nil
	}
	for _, p := range r.posts {
		if p.capture != nil {
			p.capture.Close()
			p.capture = nil
		}
	}
	if c := r.pluginLog.Swap(nil); c != nil {
		c.Close()
	}
}

// clear removes what the role has in the runtime folder, at its orderly end.
func (r *roleLoop) clear() {
	r.strip()
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
	r.strip()
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
