//go:build unix

package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// kind is what a process did.
type kind string

const (
	claim    kind = "claim"
	release  kind = "release"
	evict    kind = "evict"
	owner    kind = "owner" // reads the owner word
	check    kind = "check"
	beat     kind = "beat"
	write    kind = "write"
	read     kind = "read" // as owner
	snapshot kind = "snapshot"
)

// call is an operation as it was begun.
type call struct {
	Kind  kind
	PID   uint32
	Term  uint64 // that the caller believes to own
	Value uint64 // to be written
	// Granted are the terms that nobody was told to have: an operation that
	// did not return may have got one of them.
	Granted []uint64
}

// result is what the caller was told.
type result struct {
	Open  bool // nothing: it may have happened or not, or happens later
	OK    bool
	Term  uint64
	PID   uint32 // claim: who owned before; owner: who owns
	Crash bool   // claim: by a proof of death
	Value uint64
	At    int64 // when it was told
}

// torn is the value of a read that is not the value of any write.
const torn = ^uint64(0)

// owning is the owner word.
type owning struct {
	pid  uint32
	term uint64
}

// ownership is the owner word as an object: it is claimed in the next term,
// released by its owner, evicted from one that is dead. died says when each
// process ended, at the earliest.
func ownership(died map[uint32]int64) porcupine.Model {
	dead := func(pid uint32, by int64) bool {
		at, ok := died[pid]
		return ok && at <= by
	}
	return model(owning{}, func(s owning, c call, r result) []owning {
		mine := s == owning{c.PID, c.Term}
		vacant := owning{0, s.term}
		taken := owning{c.PID, s.term + 1}
		switch {
		case c.Kind == claim && r.Open:
			return []owning{s, taken}
		case c.Kind == claim && r.OK:
			if s.pid == r.PID && taken.term == r.Term && (!r.Crash || s.pid == 0 || dead(s.pid, r.At)) {
				return []owning{taken}
			}
		case c.Kind == claim:
			// Refused because another owns, or taken and lost before it returned.
			if s.pid != 0 {
				return []owning{s, taken}
			}
			return []owning{taken}
		case c.Kind == release && r.Open && mine:
			return []owning{s, vacant}
		case c.Kind == release && r.Open:
			return []owning{s}
		case c.Kind == release && r.OK && mine:
			return []owning{vacant}
		case c.Kind == release && !r.OK && !mine:
			return []owning{s}
		case c.Kind == evict && r.Open && s.pid != 0:
			return []owning{s, vacant}
		case c.Kind == evict && r.Open:
			return []owning{s}
		case c.Kind == evict && r.OK:
			if s.pid != 0 && s.term == r.Term && dead(s.pid, r.At) {
				return []owning{vacant}
			}
		case c.Kind == evict && s.term == r.Term:
			return []owning{s}
		case c.Kind == owner && (r.Open || s == owning{r.PID, r.Term}):
			return []owning{s}
		case c.Kind == check && (r.Open || r.OK == mine):
			return []owning{s}
		case c.Kind == beat && (r.Open || !r.OK || mine): // one that is sealed still owns
			return []owning{s}
		}
		return nil
	})
}

// committed is the payload: a value, and the term that may write.
type committed struct {
	term  uint64
	value uint64
}

// payload is the payload as an object: a claim hands it to a later term, and
// only that term writes it.
func payload() porcupine.Model {
	return model(committed{}, func(s committed, c call, r result) []committed {
		mine := s.term == c.Term
		written := committed{c.Term, c.Value}
		switch {
		case c.Kind == claim && r.Open:
			all := []committed{s}
			for _, term := range c.Granted {
				if term > s.term {
					all = append(all, committed{term, s.value})
				}
			}
			return all
		case c.Kind == claim && r.OK:
			if r.Term > s.term {
				return []committed{{r.Term, s.value}}
			}
		case c.Kind == write && r.Open && mine:
			return []committed{s, written}
		case c.Kind == write && r.OK:
			if mine {
				return []committed{written}
			}
		case c.Kind == read && r.OK:
			if mine && s.value == r.Value {
				return []committed{s}
			}
		case c.Kind == snapshot && !r.Open:
			if s == (committed{r.Term, r.Value}) {
				return []committed{s}
			}
		default: // refused, or a read that did not return
			return []committed{s}
		}
		return nil
	})
}

// Which kinds of operations each object knows, and which change anything.
var (
	ofOwnership = map[kind]bool{claim: true, release: true, evict: true, owner: true, check: true, beat: true}
	ofPayload   = map[kind]bool{claim: true, write: true, read: true, snapshot: true}
	changes     = map[kind]bool{claim: true, release: true, evict: true, write: true}
)

func model[S comparable](initial S, step func(S, call, result) []S) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{initial} },
		Step: func(s, in, out any) []any {
			var all []any
			for _, next := range step(s.(S), in.(call), out.(result)) {
				all = append(all, next)
			}
			return all
		},
		DescribeOperation: func(in, out any) string { return describe(in.(call), out.(result)) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
	return m.ToModel()
}

func describe(c call, r result) string {
	told := "refused"
	switch {
	case r.Open:
		told = "?"
	case c.Kind == claim && r.OK:
		told = fmt.Sprintf("term %d after pid %d", r.Term, r.PID)
	case c.Kind == owner:
		told = fmt.Sprintf("pid %d term %d", r.PID, r.Term)
	case c.Kind == evict:
		told = fmt.Sprintf("%v, term %d", r.OK, r.Term)
	case c.Kind == snapshot:
		told = fmt.Sprintf("%#x of term %d", r.Value, r.Term)
	case c.Kind == read && r.OK:
		told = fmt.Sprintf("%#x", r.Value)
	case r.OK:
		told = "ok"
	}
	switch c.Kind {
	case write:
		return fmt.Sprintf("write %#x in %d: %s", c.Value, c.Term, told)
	case claim, owner, evict, snapshot:
		return fmt.Sprintf("%s by %d: %s", c.Kind, c.PID, told)
	}
	return fmt.Sprintf("%s by %d in %d: %s", c.Kind, c.PID, c.Term, told)
}
