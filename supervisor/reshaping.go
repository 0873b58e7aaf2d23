package supervisor

import (
	"fmt"
	"sync"
)

// reshaping lets one change of roles or their configs through at a time, and
// knows which one that is. The zero value is free. It is safe for concurrent use.
type reshaping struct {
	mu   sync.Mutex
	what string // "scale kv"; empty: nothing is under way
}

// begin refuses with ErrBusy, naming what is under way. Without an error end has
// to follow.
func (r *reshaping) begin(what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.what != "" {
		return fmt.Errorf("%s: %w: %s; repeat this when that is done", what, ErrBusy, r.what)
	}
	r.what = what
	return nil
}

func (r *reshaping) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.what = ""
}
