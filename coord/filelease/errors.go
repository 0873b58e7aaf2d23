package filelease

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// These can be returned by Open.
var (
	// ErrNetworkFS: locks on such a file system may exist on one machine only,
	// or hang for ever. AllowNetworkFS overrides it.
	ErrNetworkFS = errors.New("the folder is on a network file system, where locks cannot be relied on")
)

// These can be returned by all methods that work on a key.
var (
	// ErrKey: the key has a character, or a length, that a file name must not have.
	ErrKey = errors.New("bad key")
	// ErrUnreadable: a record or counter is damaged, or of a newer version. It
	// proves nothing, so nothing is granted; the text says what to do.
	ErrUnreadable = errors.New("unreadable")
	// ErrExhausted: the counter is at its end.
	ErrExhausted = errors.New("epochs are exhausted")
	// ErrLost: the lease is no longer the caller's.
	ErrLost = errors.New("lease lost")
)

// Holder is who holds a lease. A zero field is unknown.
type Holder struct {
	PID         int
	Host        string // host name, for people
	Run, Block  string // see Claimant
	SessionHint string
	Label       string
	Version     string
	Epoch       uint64
	Since       time.Time // wall clock, for people
}

// HeldError says that somebody else holds the lease.
type HeldError struct {
	Key    string
	Holder Holder
	Why    string // set if more is to be said than that the holder lives
}

func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lease %q is held", e.Key)
	h := e.Holder
	switch {
	case h.PID == 0:
		b.WriteString(" by an unknown process")
	case h.Label != "":
		fmt.Fprintf(&b, " by %s, pid %d", h.Label, h.PID)
	default:
		fmt.Fprintf(&b, " by pid %d", h.PID)
	}
	if h.Host != "" {
		fmt.Fprintf(&b, " on %s", h.Host)
	}
	if !h.Since.IsZero() {
		fmt.Fprintf(&b, ", since %s", h.Since.Format(time.RFC3339))
	}
	if e.Why != "" {
		fmt.Fprintf(&b, " (%s)", e.Why)
	}
	return b.String()
}
