package coord

import (
	"errors"
	"time"
)

// A member that gave the lease up waits before it contends again, so that
// others go first and a lead that ends at once does not spin. The wait doubles
// with each short leadership in a row, up to the maximum; a leadership that
// lasted longer than the maximum starts the series anew.
const (
	pauseAfterResign = 100 * time.Millisecond // lead returned nil, or a resignation was asked for
	pauseAfterError  = time.Second            // lead returned an error, hung, or could not be promoted
	pauseLongest     = 30 * time.Second
)

// pauses is the back-off of one member.
type pauses struct {
	row int // short leaderships in a row
}

// after is how long to stay out of the race once a leadership has ended: cause
// is why its context ended before lead returned with err, nil if it had not.
func (p *pauses) after(err, cause error, led time.Duration, spread float64) time.Duration {
	switch {
	case errors.Is(cause, ErrLost):
		return 0 // another leads; this one stands by for it
	case errors.Is(cause, ErrAskedToResign), errors.Is(cause, ErrRoleClosed):
		return pauseAfterResign // others go first; it has not failed
	case errors.Is(cause, ErrStalled):
		return p.next(true, led, spread)
	case cause != nil:
		return p.next(false, led, spread)
	}
	return p.next(err != nil, led, spread)
}

// next is how long to stay out of the race after a leadership that lasted for
// led. spread is in [0,1) and takes up to a quarter off, so that members that
// failed together do not come back together.
func (p *pauses) next(failed bool, led time.Duration, spread float64) time.Duration {
	if led > pauseLongest {
		p.row = 0
	}
	d := pauseAfterResign
	if failed {
		d = pauseAfterError
	}
	for range p.row {
		if d *= 2; d >= pauseLongest {
			d = pauseLongest
			break
		}
	}
	p.row++
	return d - time.Duration(float64(d)/4*spread)
}
