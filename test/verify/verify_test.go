package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/coord/role"
)

func rulesOf(all []Violation) (rules []string) {
	for _, v := range all {
		rules = append(rules, v.Rule)
	}
	return rules
}

func TestEveryViolationIsFound(t *testing.T) {
	lead := func(token role.Token, start, end int64) Lead { return Lead{"w", token, start, end} }
	call := func(m Moment, token role.Token, start, end int64) Call { return Call{"h", m, token, start, end} }
	for _, c := range []struct {
		name string
		h    History
		want []string
	}{
		{"nothing", History{}, nil},
		{"one after the other", History{Leads: []Lead{lead(1, 10, 20), lead(2, 20, 30), lead(5, 31, Open)}}, nil},
		{"in any order", History{Leads: []Lead{lead(2, 20, 30), lead(1, 10, 20)}}, nil},
		{"an end that nobody saw", History{Leads: []Lead{lead(1, 10, Unknown), lead(2, 20, 30)}}, nil},
		{"two at a time", History{Leads: []Lead{lead(1, 10, 21), lead(2, 20, 30)}}, []string{"overlap"}},
		{"one inside another", History{Leads: []Lead{lead(1, 10, 50), lead(2, 20, 30), lead(3, 30, 40)}}, []string{"overlap", "overlap"}},
		{"one that never ended", History{Leads: []Lead{lead(1, 10, Open), lead(2, 20, 30)}}, []string{"overlap"}},
		{"two at once", History{Leads: []Lead{lead(1, 10, 20), lead(2, 10, 20)}}, []string{"overlap"}},
		{"a token twice", History{Leads: []Lead{lead(1, 10, 20), lead(1, 20, 30)}}, []string{"tokens"}},
		{"a lower token", History{Leads: []Lead{lead(3, 10, 20), lead(2, 20, 30)}}, []string{"tokens"}},
		{"a later generation with a lower term", History{Leads: []Lead{lead(role.MakeToken(1, 9), 10, 20), lead(role.MakeToken(2, 1), 20, 30)}}, nil},
		{"no token", History{Leads: []Lead{lead(0, 10, 20)}}, []string{"malformed"}},
		{"backwards", History{Leads: []Lead{lead(1, 10, 9)}}, []string{"malformed"}},

		{"hooks in turn", History{Calls: []Call{call(Promote, 1, 10, 11), call(Demote, 1, 12, 13), call(Promote, 2, 13, 14)}}, nil},
		{"told twice", History{Calls: []Call{call(Promote, 1, 10, 11), call(Promote, 1, 12, 13), call(Demote, 1, 14, 15), call(Demote, 1, 16, 17)}}, nil},
		{"a demotion alone", History{Calls: []Call{call(Promote, 1, 10, 11), call(Demote, 1, 12, 13), call(Demote, 2, 14, 15), call(Promote, 3, 15, 16)}}, nil},
		{"the plugin died in its call", History{Calls: []Call{call(Promote, 1, 10, 11), call(Demote, 1, 12, Unknown), call(Promote, 2, 13, 14)}}, nil},
		{"two hooks, each in turn", History{Calls: []Call{call(Promote, 1, 10, 20), {"other", Promote, 1, 11, 12}, call(Demote, 1, 21, 22), {"other", Demote, 1, 21, 22}}}, nil},
		{"promoted without a demotion", History{Calls: []Call{call(Promote, 1, 10, 11), call(Promote, 2, 12, 13)}}, []string{"alternate"}},
		{"promoted before the demotion has ended", History{Calls: []Call{call(Promote, 1, 10, 11), call(Demote, 1, 12, 15), call(Promote, 2, 14, 16)}}, []string{"hook overlap"}},
		{"promoted beside a demotion that hangs", History{Calls: []Call{call(Promote, 1, 10, 11), call(Demote, 1, 12, Open), call(Promote, 2, 14, 16)}}, []string{"hook overlap"}},
		{"demoted beside its promotion", History{Calls: []Call{call(Promote, 1, 10, 13), call(Demote, 1, 12, 15)}}, []string{"hook overlap"}},
		{"demoted for another", History{Calls: []Call{call(Promote, 2, 10, 11), call(Demote, 1, 12, 13)}}, []string{"alternate"}},
		{"an earlier demotion late", History{Calls: []Call{call(Demote, 2, 10, 11), call(Demote, 1, 12, 13)}}, []string{"hook tokens"}},
		{"back to a lower token", History{Calls: []Call{call(Promote, 2, 10, 11), call(Demote, 2, 12, 13), call(Promote, 1, 14, 15)}}, []string{"hook tokens"}},
		{"promoted again after its end", History{Calls: []Call{call(Promote, 2, 10, 11), call(Demote, 2, 12, 13), call(Promote, 2, 14, 15)}}, []string{"hook tokens"}},
		{"a call without a token", History{Calls: []Call{call(Promote, 0, 10, 11)}}, []string{"malformed"}},
		{"a call backwards", History{Calls: []Call{call(Promote, 1, 11, 10)}}, []string{"malformed"}},
	} {
		if got := rulesOf(c.h.Check()); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q: %v", c.name, got, c.want, c.h.Check())
		}
	}
}

func TestTokensMustRise(t *testing.T) {
	for _, c := range []struct {
		tokens []role.Token
		want   []string
	}{
		{nil, nil}, {[]role.Token{3, 4, 9}, nil},
		{[]role.Token{3, 3}, []string{"tokens"}}, {[]role.Token{3, 2, 4}, []string{"tokens"}}, {[]role.Token{0}, []string{"malformed"}},
	} {
		if got := rulesOf(Tokens(c.tokens)); !slices.Equal(got, c.want) {
			t.Errorf("%v: found %q, want %q", c.tokens, got, c.want)
		}
	}
}

func TestRingBecomesAHistory(t *testing.T) {
	good := []Entry{{1, 10, 100, 200}, {2, 11, 0, 0}, {3, 12, 210, 0}, {4, 13, 300, 0}}
	h := Ring(7, good)
	want := []Lead{{"pid 10", role.MakeToken(7, 1), 100, 200}, {"pid 12", role.MakeToken(7, 3), 210, Unknown}, {"pid 13", role.MakeToken(7, 4), 300, Open}}
	if !slices.Equal(h.Leads, want) {
		t.Errorf("leads %v, want %v", h.Leads, want)
	}
	if v := h.Check(); v != nil {
		t.Error(v)
	}
	bad := []Entry{{1, 10, 100, 200}, {2, 11, 150, 300}}
	if got := rulesOf(Ring(7, bad).Check()); !slices.Equal(got, []string{"overlap"}) {
		t.Errorf("found %q", got)
	}
	bad = []Entry{{1, 10, 300, 310}, {2, 11, 100, 200}}
	if got := rulesOf(Ring(7, bad).Check()); !slices.Equal(got, []string{"tokens"}) {
		t.Errorf("found %q", got)
	}
}

const goodEvents = `
{"id":1,"type":"supervisor-started"}
{"id":2,"type":"leader-active","role":"kv","worker":"kv-0","token":"1"}
{"id":3,"type":"hook","role":"kv","plugin":"p","token":"1","text":"on-promote"}
{"id":4,"type":"leader-active","role":"other","worker":"other-0","token":"1"}
{"id":5,"type":"leader-lost","role":"kv","worker":"kv-0","token":"1"}
{"id":6,"type":"leader-active","role":"kv","worker":"kv-1","token":"2"}
{"id":7,"type":"hook","role":"kv","plugin":"p","token":"1","text":"on-demote"}
{"id":9,"type":"hook","role":"kv","plugin":"p","token":"2","text":"on-promote"}
`

func TestEventsBecomeAHistory(t *testing.T) {
	for _, c := range []struct {
		name    string
		old, by string
		want    []string
		err     bool
	}{
		{"good", "", "", nil, false},
		{"no loss between two", `"leader-lost"`, `"warning"`, []string{"overlap"}, false},
		{"the token stays", `"kv-1","token":"2"`, `"kv-1","token":"1"`, []string{"tokens"}, false},
		{"no demotion", `"token":"1","text":"on-demote"`, `"token":"1","text":"start"`, []string{"alternate"}, false},
		{"demoted for another", `"token":"1","text":"on-demote"`, `"token":"2","text":"on-demote"`, []string{"alternate", "hook tokens"}, false},
		{"numbers go back", `"id":9`, `"id":7`, nil, true},
		{"no JSON", `{"id":9`, `{{"id":9`, nil, true},
	} {
		text := goodEvents
		if c.old != "" {
			text = strings.Replace(goodEvents, c.old, c.by, 1)
			if text == goodEvents {
				t.Fatalf("%s: nothing was changed", c.name)
			}
		}
		h, err := Events("kv", strings.NewReader(text))
		if (err != nil) != c.err {
			t.Errorf("%s: error %v", c.name, err)
		} else if got := rulesOf(h.Check()); err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
		if c.name == "good" && (len(h.Leads) != 2 || len(h.Calls) != 3) {
			t.Errorf("%d leads and %d calls were read", len(h.Leads), len(h.Calls))
		}
	}
}

func TestRecordsAreReadByRole(t *testing.T) {
	tokens, err := Records("kv", strings.NewReader(`{"role":"kv","token":"5"} {"role":"x","token":"1"} {"role":"kv","token":"4"}`))
	if err != nil || !slices.Equal(tokens, []role.Token{5, 4}) {
		t.Fatalf("%v, %v", tokens, err)
	}
	if got := rulesOf(Tokens(tokens)); !slices.Equal(got, []string{"tokens"}) {
		t.Errorf("found %q", got)
	}
	if _, err := Records("kv", strings.NewReader("x")); err == nil {
		t.Error("no error for text that is no JSON")
	}
}
