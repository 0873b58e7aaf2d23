package coord

import "testing"

// A member turns to a new owner when that one's first moment is over, and to the
// first that it sees, and to a vacant lease, at once.
func TestNewOwnerHasItsFirstMoment(t *testing.T) {
	const me, old, next, third = 1, 2, 3, 4
	watched := watch{pid: old, term: 7}
	var f fresh
	for _, step := range []struct {
		what string
		w    watch
		pid  uint32
		term uint64
		now  int64
		wait bool
	}{
		{"nobody was watched", watch{}, next, 8, 1000, false},
		{"the one that is watched", watched, old, 7, 1000, false},
		{"nobody owns", watched, 0, 7, 1000, false},
		{"this member itself", watched, me, 8, 1000, false},
		{"a new owner", watched, next, 8, 1000, true},
		{"the same a little later", watched, next, 8, 999 + int64(firstMoment), true},
		{"its moment is over", watched, next, 8, 1000 + int64(firstMoment), false},
		{"another after it", watched, third, 9, 1000 + int64(firstMoment), true},
		{"the same owner in a new term", watched, old, 10, 1000 + int64(firstMoment), true},
	} {
		if got := f.left(&step.w, me, step.pid, step.term, step.now) > 0; got != step.wait {
			t.Errorf("%s: left alone %v, want %v", step.what, got, step.wait)
		}
	}
}
