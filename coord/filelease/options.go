package filelease

import (
	"fmt"
	"time"
)

const (
	// DefaultTTL is how long a lease lasts after a renewal.
	DefaultTTL = 15 * time.Second
	// DefaultRenewInterval is how often Keep renews.
	DefaultRenewInterval = 5 * time.Second

	renewalsPerTTL = 3 // at least: one may fail, and Done comes before the end
)

// Option changes what Open does.
type Option func(*options)

type options struct {
	networkFS  bool
	ttl, renew time.Duration
	clock      Clock
}

// AllowNetworkFS makes Open accept a network file system. Locks there are as
// good as its server makes them.
func AllowNetworkFS() Option { return func(o *options) { o.networkFS = true } }

// WithTTL sets how long a lease lasts after a renewal; DefaultTTL without it.
// Without WithRenewInterval it is renewed at every third of it. All who use a
// store should have the same TTL; each holder's own is in its record.
func WithTTL(d time.Duration) Option { return func(o *options) { o.ttl = d } }

// WithRenewInterval sets how often Keep renews: at most a third of the TTL.
func WithRenewInterval(d time.Duration) Option { return func(o *options) { o.renew = d } }

// WithClock replaces the clock that expiry is judged by. Timers still run in
// real time.
func WithClock(c Clock) Option { return func(o *options) { o.clock = c } }

func newOptions(opts []Option) (options, error) {
	o := options{ttl: DefaultTTL, clock: systemClock{}}
	for _, opt := range opts {
		opt(&o)
	}
	if o.renew == 0 {
		o.renew = o.ttl / renewalsPerTTL
	}
	switch {
	case o.clock == nil:
		return o, fmt.Errorf("%w: the clock is nil", ErrOptions)
	case o.ttl <= 0:
		return o, fmt.Errorf("%w: the ttl is %v: it must be above 0", ErrOptions, o.ttl)
	case o.renew <= 0:
		return o, fmt.Errorf("%w: the renew interval is %v (the ttl is %v): it must be above 0", ErrOptions, o.renew, o.ttl)
	case o.renew > o.ttl/renewalsPerTTL:
		return o, fmt.Errorf("%w: the renew interval is %v and the ttl %v: it must be at most a third of the ttl (%v)",
			ErrOptions, o.renew, o.ttl, o.ttl/renewalsPerTTL)
	}
	return o, nil
}
