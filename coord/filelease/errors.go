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
	// ErrOptions: the times of WithTTL and WithRenewInterval do not fit together.
	ErrOptions = errors.New("bad options")
)

// These can be returned by all methods that work on a key.
var (
	// ErrKey: the key has a character, or a length, that a file name must not have.
	ErrKey = errors.New("bad key")
	// ErrUnreadable: a record or counter is damaged, or of a newer version. It
	// proves nothing, so nothing is granted; the text says what to do. For a
	// record it is wrapped by a *HeldError.
	ErrUnreadable = errors.New("unreadable")
	// ErrExhausted: the counter is at its end.
	ErrExhausted = errors.New("epochs are exhausted")
	// ErrLost: the lease is no longer the caller's. Once it was said of a
	// Lease, it is said for ever.
	ErrLost = errors.New("lease lost")
	// ErrBusy: another process was in the critical section of the key, and the
	// caller did not want to wait, or no longer.
	ErrBusy = errors.New("locked by another process")
)

// Holder is who holds a lease. A zero field is unknown.
type Holder struct {
	PID         int
	Host        string // host name
	Run, Block  string // see Claimant
	SessionHint string
	Label       string
	Version     string
	Epoch       uint64
	Command     int           // pid of the command that NameCommand named
	Since       time.Time     // wall clock, for people
	Renewed     time.Time     // the same
	TTL         time.Duration // the lease lasts for so long after a renewal
	Pinned      bool          // see Claimant
	// ExpiresIn is when the lease is over unless it is renewed, at the earliest;
	// 0 or below if it is, or if that is never.
	ExpiresIn time.Duration
}

// String is how messages name the holder: its label, pid and host.
func (h Holder) String() string {
	var b strings.Builder
	switch {
	case h.PID == 0 && h.Label == "":
		b.WriteString("an unknown process")
	case h.PID == 0:
		b.WriteString(h.Label)
	case h.Label != "":
		fmt.Fprintf(&b, "%s, pid %d", h.Label, h.PID)
	default:
		fmt.Fprintf(&b, "pid %d", h.PID)
	}
	if h.Host != "" {
		fmt.Fprintf(&b, " on %s", h.Host)
	}
	return b.String()
}

// HeldError says that somebody else holds the lease.
type HeldError struct {
	Key    string
	Holder Holder
	Why    string // set if more is to be said than that the holder lives

	cause error         // ErrUnreadable, or nil
	again time.Duration // when time alone may have changed it; 0: never
	watch []watched     // whose end may change it
}

func (e *HeldError) Error() string {
	var b strings.Builder
	h := e.Holder
	fmt.Fprintf(&b, "lease %q is held by %v", e.Key, h)
	if !h.Since.IsZero() {
		fmt.Fprintf(&b, ", since %s", h.Since.Format(time.RFC3339))
	}
	if h.ExpiresIn > 0 {
		fmt.Fprintf(&b, ", expires in %v unless renewed", h.ExpiresIn.Round(roundTo(h.ExpiresIn)))
	}
	if e.Why != "" {
		fmt.Fprintf(&b, " (%s)", e.Why)
	}
	return b.String()
}

func (e *HeldError) Unwrap() error { return e.cause }

func roundTo(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return time.Second
	}
	return time.Millisecond
}
