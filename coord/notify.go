package coord

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/standbyd/standbyd/internal/rolesock"
)

// Requests to the notify goroutine, one bit each: a request made twice before
// it is served is served once.
const (
	sayLook   uint32 = 1 << iota // the segment is worth a look
	sayReady                     // this worker can take over
	sayStore                     // the supervisor is a new one: here are its listeners
	sayActive                    // this member leads: the other members look, too
)

// storeAttempts bounds how often the listeners are offered, once an epoch, to a
// supervisor that holds its seat and does not receive: it may be about to.
const storeAttempts = 300

// notifier tells the supervisor, over its datagram socket, and the other
// members, by their event words, what a lead should not wait for. All of it is
// hints: the segment says what is true, and whoever is away finds it there.
type notifier struct {
	path      string // empty: no supervisor to tell
	active    func() // does in this process and the segment what follows from sayActive
	worker    string
	listeners []heldListener
	pending   atomic.Uint32
	bell      chan struct{} // capacity 1
	stores    atomic.Int32  // attempts left to hand the listeners over
}

// say asks for messages and returns at once.
func (n *notifier) say(what uint32) {
	if what&sayStore != 0 {
		n.stores.Store(storeAttempts)
	}
	n.pending.Or(what)
	n.ring()
}

// again serves what could not be served before. The beat goroutine calls it
// once an epoch.
func (n *notifier) again() {
	if n.pending.Load() != 0 {
		n.ring()
	}
}

func (n *notifier) ring() {
	select {
	case n.bell <- struct{}{}:
	default:
	}
}

// run is the notify goroutine. What was asked for before stop is still sent.
func (n *notifier) run(stop <-chan struct{}) {
	for {
		select {
		case <-n.bell:
			n.flush()
		case <-stop:
			n.flush()
			return
		}
	}
}

// flush sends what is pending. The order matters to a new supervisor: it
// should hold the listeners before it hears that a worker is ready. The socket
// is dialled anew for each message, since another supervisor may have taken
// its place.
func (n *notifier) flush() {
	what := n.pending.Swap(0)
	if what&sayActive != 0 {
		n.active()
	}
	if n.path == "" {
		return
	}
	if what&sayStore != 0 && len(n.listeners) > 0 {
		if n.handBack() != nil && n.stores.Add(-1) > 0 {
			n.pending.Or(sayStore)
		}
	}
	switch {
	case what&sayReady != 0:
		n.send(sayReady, "READY=1") // is a reason to look, too
	case what&sayLook != 0:
		n.send(sayLook, "STANDBYD_LOOK=1")
	}
}

// handBack sends the listeners to whoever receives now.
func (n *notifier) handBack() error {
	files, err := listenerFiles(n.listeners)
	if err != nil {
		return err
	}
	defer closeAll(files)
	return rolesock.Send(n.path, strings.Join([]string{
		"FDSTORE=1",
		"FDNAME=" + listenerNames(n.listeners, ":"),
		envWorker + "=" + n.worker,
	}, "\n"), files)
}

// send sends one hint, and keeps it for later if the receiver is too busy to
// take it. If nobody is there, nobody needs it: the segment says the same.
func (n *notifier) send(what uint32, text string) {
	if err := rolesock.Send(n.path, text, nil); errors.Is(err, rolesock.ErrFull) {
		n.pending.Or(what)
	}
}
