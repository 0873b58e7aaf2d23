package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/standbyd/standbyd/coord/role"
)

// Entry is what a segment's ring keeps of one term, as far as it is judged.
type Entry struct {
	Term      uint64
	PID       uint32
	ActiveAt  int64
	RetiredAt int64
}

// Ring makes a history of the ring's entries of one generation. A term that
// was never active is no leadership. One that did not retire has ended before
// the next became active if there is a next: the ring has no time for it, as
// its stamp of the end is when somebody noticed.
func Ring(generation uint64, entries []Entry) History {
	var h History
	var last uint64
	for _, e := range entries {
		if e.ActiveAt != 0 {
			last = max(last, e.Term)
		}
	}
	for _, e := range entries {
		if e.ActiveAt == 0 {
			continue
		}
		l := Lead{Who: fmt.Sprintf("pid %d", e.PID), Token: role.MakeToken(generation, e.Term), Start: e.ActiveAt, End: e.RetiredAt}
		if l.End == 0 && e.Term != last {
			l.End = Unknown
		}
		h.Leads = append(h.Leads, l)
	}
	return h
}

// event is what is read of an event of the supervisor.
type event struct {
	ID     uint64     `json:"id"`
	Type   string     `json:"type"`
	Role   string     `json:"role"`
	Worker string     `json:"worker"`
	Plugin string     `json:"plugin"`
	Token  role.Token `json:"token"`
	Text   string     `json:"text"`
}

// Events makes a history of one role from the supervisor's events, as `events
// -o json` prints them. The numbers of the events are the clock. An event tells
// that a hook's call has ended; the start is taken to be then too.
//
// The error is of the text, or says that the numbers of the events do not rise.
func Events(name string, r io.Reader) (History, error) {
	var h History
	var last uint64
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return h, nil
		} else if err != nil {
			return h, fmt.Errorf("read event after %d: %w", last, err)
		}
		if e.ID <= last {
			return h, fmt.Errorf("event %d follows event %d", e.ID, last)
		}
		last = e.ID
		if e.Role == name {
			h.take(e)
		}
	}
}

func (h *History) take(e event) {
	at := int64(e.ID)
	switch {
	case e.Type == "leader-active":
		// The same leader is told again when another supervisor finds it.
		if n := len(h.Leads); n > 0 && h.Leads[n-1].Token == e.Token && h.Leads[n-1].End == Open {
			return
		}
		h.Leads = append(h.Leads, Lead{Who: e.Worker, Token: e.Token, Start: at})
	case e.Type == "leader-lost":
		for i := range h.Leads {
			if l := &h.Leads[i]; l.Token == e.Token && l.End == Open {
				l.End = at
			}
		}
	case e.Type == "hook" && e.Text == Promote.String():
		h.Calls = append(h.Calls, Call{e.Plugin, Promote, e.Token, at, at})
	case e.Type == "hook" && e.Text == Demote.String():
		h.Calls = append(h.Calls, Call{e.Plugin, Demote, e.Token, at, at})
	}
}

// Records reads the tokens of one role's history, as `history -o json` prints
// it, for [Tokens].
func Records(name string, r io.Reader) ([]role.Token, error) {
	var tokens []role.Token
	for d := json.NewDecoder(r); ; {
		var record struct {
			Role  string     `json:"role"`
			Token role.Token `json:"token"`
		}
		if err := d.Decode(&record); errors.Is(err, io.EOF) {
			return tokens, nil
		} else if err != nil {
			return tokens, fmt.Errorf("read record %d: %w", len(tokens), err)
		}
		if record.Role == name {
			tokens = append(tokens, record.Token)
		}
	}
}
