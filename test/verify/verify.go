// Package verify judges whole histories of a role: who led when, with which
// token, and what its hooks were told. It knows nothing of how a history came
// about, so every test of the project can hand it one: from a segment's ring,
// from the supervisor's events, from the workers' own records.
//
// What it checks, each with the name that a [Violation] carries:
//
//	overlap      two leaders were active at the same time
//	tokens       a later leader did not have a higher token
//	alternate    a hook was promoted for a second leadership before it was
//	             demoted for the first, or demoted for another than it knew
//	hook tokens  a hook was promoted for a lower token than before
//	hook overlap a hook was called while its last call had not ended
//	malformed    an interval that ends before it starts, a token of 0
package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/standbyd/standbyd/coord/role"
)

// Times are of one clock per history, of whatever unit: nanoseconds, or the
// numbers of events. These stand for an end that has no time.
const (
	Open    int64 = 0  // had not ended when the history did
	Unknown int64 = -1 // had ended before whatever follows, nobody knows when
)

// Lead is one leadership: its holder might act from Start to End.
type Lead struct {
	Who   string
	Token role.Token
	Start int64
	End   int64 // or Open, or Unknown
}

// Moment is what a hook was told.
type Moment uint8

const (
	Promote Moment = iota
	Demote
)

func (m Moment) String() string { return [...]string{"on-promote", "on-demote"}[m] }

// Call is one call of a hook. A repetition of the last call, with the same
// token, is in order: hooks are told at least once.
type Call struct {
	Hook   string
	Moment Moment
	Token  role.Token
	Start  int64
	End    int64 // or Open, or Unknown: the hook's process died
}

// History is what happened to one role. Leads need no order. Calls of one hook
// that start at the same time are in the order of the list.
type History struct {
	Leads []Lead
	Calls []Call
}

// Violation is one thing that must never happen.
type Violation struct {
	Rule string
	Text string
}

func (v Violation) Error() string { return v.Rule + ": " + v.Text }

// Check returns every violation, nil if there is none.
func (h History) Check() []Violation {
	var all violations
	all.leads(h.Leads)
	all.calls(h.Calls)
	return all
}

// Tokens checks that a list of tokens rises strictly, for records that have no
// intervals.
func Tokens(tokens []role.Token) []Violation {
	var all violations
	for i, t := range tokens {
		if t == 0 {
			all.add("malformed", "entry %d has no token", i)
		}
		if i > 0 && t <= tokens[i-1] {
			all.add("tokens", "entry %d: %v follows %v", i, t, tokens[i-1])
		}
	}
	return all
}

type violations []Violation

func (v *violations) add(rule, format string, args ...any) {
	*v = append(*v, Violation{rule, fmt.Sprintf(format, args...)})
}

func (v *violations) leads(leads []Lead) {
	sorted := slices.Clone(leads)
	slices.SortStableFunc(sorted, func(a, b Lead) int { return cmp.Compare(a.Start, b.Start) })
	for i, l := range sorted {
		if l.Token == 0 {
			v.add("malformed", "%s has no token", l)
		}
		if l.End > 0 && l.End < l.Start {
			v.add("malformed", "%s ends before it starts", l)
		}
		if i == 0 {
			continue
		}
		if before := sorted[i-1]; l.Token <= before.Token {
			v.add("tokens", "%s starts after %s", l, before)
		}
		// Not the one before alone: an earlier one may last longer.
		for _, before := range sorted[:i] {
			if before.End == Open || before.End > l.Start {
				v.add("overlap", "%s starts while %s is active", l, before)
			}
		}
	}
}

func (l Lead) String() string {
	return fmt.Sprintf("%s with token %v [%d, %s]", l.Who, l.Token, l.Start, end(l.End))
}

func (c Call) String() string {
	return fmt.Sprintf("%s: %v of token %v [%d, %s]", c.Hook, c.Moment, c.Token, c.Start, end(c.End))
}

func end(at int64) string {
	switch at {
	case Open:
		return "..."
	case Unknown:
		return "?"
	}
	return fmt.Sprint(at)
}

// heard is what one hook knows.
type heard struct {
	told    role.Token // promoted for, 0 none
	highest role.Token // ever promoted for
	gone    role.Token // demoted for last
	last    *Call
}

func (v *violations) calls(calls []Call) {
	sorted := slices.Clone(calls)
	slices.SortStableFunc(sorted, func(a, b Call) int { return cmp.Compare(a.Start, b.Start) })
	hooks := map[string]*heard{}
	for i := range sorted {
		c := &sorted[i]
		h := hooks[c.Hook]
		if h == nil {
			h = &heard{}
			hooks[c.Hook] = h
		}
		if c.Token == 0 {
			v.add("malformed", "%s", c)
		}
		if c.End > 0 && c.End < c.Start {
			v.add("malformed", "%s ends before it starts", c)
		}
		if l := h.last; l != nil && (l.End == Open || l.End > c.Start) {
			v.add("hook overlap", "%s starts before the end of %s", c, l)
		}
		h.last = c
		switch c.Moment {
		case Promote:
			if h.told != 0 && h.told != c.Token {
				v.add("alternate", "%s, and it is not demoted for %v", c, h.told)
			}
			if c.Token < h.highest || c.Token == h.gone && h.gone != 0 {
				v.add("hook tokens", "%s, after %v", c, h.highest)
			}
			h.told, h.highest = c.Token, max(h.highest, c.Token)
		case Demote:
			// A promotion that was due can be dropped when its leader is gone
			// before: then the demotion alone is told.
			if h.told != 0 && h.told != c.Token {
				v.add("alternate", "%s, and it is promoted for %v", c, h.told)
			}
			if h.told == 0 && c.Token < h.gone {
				v.add("hook tokens", "%s, after %v", c, h.gone)
			}
			h.told, h.gone = 0, c.Token
		}
	}
}
