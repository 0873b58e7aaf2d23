//go:build interleave

package election

import (
	"sync/atomic"
	"testing"

	"github.com/standbyd/standbyd/coord/shm"
)

// The walk, for tests of packages that are built on this one.

type (
	World   = world
	Process = process
	Point   = point
)

const (
	Every    = every
	PointAny = pointAny
)

// WalkNone and WalkSome walk all orders and assert that none breaks a promise,
// or that one does.
func WalkNone(t *testing.T, deaths int, begin func(*World)) {
	(&walk{preemptions: every, deaths: deaths}).none(t, begin)
}

func WalkSome(t *testing.T, begin func(*World)) { (&walk{preemptions: every}).some(t, begin) }

// NewPoint adds a point before a step that looks at the owner word, the commit
// word or the further words.
func NewPoint(name string, owner, commit, more bool) Point {
	var mask uint32
	for i, on := range map[int]bool{wordOwner: owner, wordCommit: commit, lookMore: more} {
		if on {
			mask |= 1 << i
		}
	}
	return newPoint(name, mask)
}

func (w *world) Add(pid uint32, body func(*Process)) *Process { return w.add(pid, body) }
func (w *world) Segment() *shm.Segment                        { return w.seg }
func (w *world) Election() *Election                          { return w.e }
func (w *world) Preempting()                                  { w.sticky = false }
func (w *world) Owns(p *Process)                              { w.owns(p) }
func (w *world) Running() *Process                            { return w.running }
func (w *world) Fail(format string, args ...any)              { w.fail(format, args...) }

// Also makes words part of every situation; they begin as 0. after is called
// after each step, last at the end; known is what they remember.
func (w *world) Also(words []*atomic.Uint64, known []uint64, after, last func()) {
	w.more, w.known = words, known
	w.after, w.last = after, last
}

func (p *process) PID() uint32                       { return p.pid }
func (p *process) World() *World                     { return p.w }
func (p *process) Pause(at Point)                    { p.pause(at) }
func (p *process) Know(place int, values ...uint64)  { p.know(place, values...) }
func (p *process) Granted(term uint64)               { p.w.granted(p, term) }
func (p *process) Attempt(policy Policy) Attempt     { return attempt(p, policy) }
func (p *process) Await(at Point, ready func() bool) { p.await(at, ready) }
