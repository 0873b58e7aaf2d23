package lease

import (
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// Option changes the segment that Create makes. Open takes none into account:
// what counts is in the segment's header.
type Option func(*shm.Params)

// WithParams replaces all parameters but the payload's: its type is T's.
func WithParams(p shm.Params) Option { return func(q *shm.Params) { *q = p } }

// WithGeneration sets the part of the token that counts segments, at most 22
// bits; 0 is the default. A program that creates its segment anew after a
// reboot passes one that it never used before, so that tokens rise.
func WithGeneration(g uint64) Option { return func(p *shm.Params) { p.Generation = g } }

// WithTick sets how long an epoch lasts for those who wait and tick by the
// clock (Acquire); 100 ms is the default.
func WithTick(d time.Duration) Option { return func(p *shm.Params) { p.Tick = d } }

// WithGrace sets by how many whole epochs an owner may be behind for those who
// Acquire; 3 is the default, 1 the least.
func WithGrace(epochs uint64) Option { return func(p *shm.Params) { p.Grace = epochs } }

// WithFence says what Acquire does to a predecessor that is still in the
// active word: shm.FenceToken (the default) nothing, shm.FenceProcess makes
// its process end, by SIGKILL if need be.
func WithFence(code uint8) Option { return func(p *shm.Params) { p.Fence = code } }

// WithPreempt says who may Acquire from a healthy owner: shm.PreemptSticky
// (the default) nobody. The classic verbs follow the lowest pid always.
func WithPreempt(code uint8) Option { return func(p *shm.Params) { p.Preempt = code } }

// WithWriterSlots sets how many open handles can have written: 1 to 64, 64 is
// the default.
func WithWriterSlots(n int) Option { return func(p *shm.Params) { p.Writers = n } }
