//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/plugins"
	"github.com/standbyd/standbyd/test/eventually"
)

// clerk has a duty that can be told to misbehave.
type clerk struct {
	plugins.Duty
	conf struct {
		Ignore bool // the end of its context
		Fail   bool // once, at first
		Done   bool // returns nil at once
	}
	tries int
}

func (c *clerk) Configure(_ context.Context, table plugins.Table) error {
	return table.Decode(&c.conf)
}

func (c *clerk) work(ctx context.Context, t plugins.Transition) error {
	err := c.Check() // before it is said: then the test may end the leadership
	fmt.Fprintf(os.Stderr, "start %s\n", t.Token)
	if c.tries++; c.conf.Fail && c.tries == 1 {
		return errors.New("no paper")
	}
	if c.conf.Done {
		return nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check fails at the start:", err)
	}
	<-ctx.Done()
	err = c.Check()
	fmt.Fprintf(os.Stderr, "end %s, leading %v, demoted %v\n", t.Token, !errors.Is(err, plugins.ErrNotLeading), errors.Is(context.Cause(ctx), plugins.ErrDemoted))
	if c.conf.Ignore {
		select {}
	}
	return ctx.Err()
}

var playClerk = puppet("clerk", func() {
	c := &clerk{}
	c.Start = c.work
	c.DrainLimit = 500 * time.Millisecond
	plugins.Serve(c)
})

// segment is a role's segment in which the test's own pid leads.
func segment(t *testing.T, term uint64) (*shm.Segment, role.Transition) {
	t.Helper()
	params := shm.DefaultParams()
	params.Generation = 1
	path := filepath.Join(t.TempDir(), "segment.1")
	seg, err := shm.Create(path, params, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seg.Close() })
	lead(seg, term)
	tr := leading(term)
	tr.Segment = path
	return seg, tr
}

func lead(seg *shm.Segment, term uint64) {
	word := shm.PackOwner(uint32(os.Getpid()), term)
	seg.Active.Store(word)
	seg.Owner.Store(word)
}

func TestDutyRunsFromPromoteToDemote(t *testing.T) {
	seg, first := segment(t, 1)
	s := raise(t, play(t, playClerk))
	pid := s.until("running").PID
	for _, tr := range []role.Transition{first, first} { // a repetition changes nothing
		if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
			t.Fatal(err)
		}
	}
	s.printed("start 1.1")
	if err := s.hooks.OnDemote(within(t, limit), first); err != nil {
		t.Fatal(err)
	}
	s.printed("end 1.1, leading false, demoted true")
	lead(seg, 2)
	second := first
	second.Token = role.MakeToken(1, 2)
	if err := s.hooks.OnPromote(within(t, limit), second); err != nil {
		t.Fatal(err)
	}
	if err := s.hooks.OnDemote(within(t, limit), first); err != nil { // late, and of no concern
		t.Fatal(err)
	}
	if err := s.hooks.OnPromote(within(t, limit), first); err == nil {
		t.Error("promoted for an older token")
	}
	s.end() // ends the duty too
	s.printed("end 1.2, leading false, demoted true")
	if s.count("start 1.1") != 1 || s.count("start 1.2") != 1 || s.count("check fails") != 0 {
		t.Errorf("have:\n%s", strings.Join(s.output(), "\n"))
	}
	if !gone(pid) {
		t.Error("it lives")
	}
}

// The duty hears of a loss from the segment alone.
func TestDutyEndsWithItsToken(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(*shm.Segment)
	}{
		{"another owner", func(s *shm.Segment) { s.Owner.Store(shm.PackOwner(1, 2)) }},
		{"released", func(s *shm.Segment) { s.Owner.Store(shm.PackOwner(0, 1)) }},
		{"another active", func(s *shm.Segment) { s.Active.Store(shm.PackOwner(1, 2)) }},
		{"same pid, next term", func(s *shm.Segment) { lead(s, 2) }},
		{"segment removed", func(s *shm.Segment) { os.Remove(s.Path()) }},
		{"segment cut", func(s *shm.Segment) { os.Truncate(s.Path(), 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seg, tr := segment(t, 1)
			s := raiseUp(t, play(t, playClerk))
			if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
				t.Fatal(err)
			}
			pid := s.hooks.Status().PID
			c.lose(seg)
			s.printed("end 1.1, leading false, demoted false")
			if err := s.hooks.OnDemote(within(t, limit), tr); err != nil {
				t.Fatal(err)
			}
			if st := s.hooks.Status(); st.PID != pid || st.State != "running" {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// A promotion that another one has overtaken is no error, and begins nothing.
func TestDutyDoesNotBeginWithoutTheToken(t *testing.T) {
	seg, tr := segment(t, 1)
	lead(seg, 2)
	s := raiseUp(t, play(t, playClerk))
	if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	s.printed("over already")
	if err := s.hooks.OnDemote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	for _, tr := range []role.Transition{
		{Role: "kv", Token: role.MakeToken(2, 2), PID: tr.PID, Segment: tr.Segment},
		{Role: "kv", Token: role.MakeToken(2, 3), PID: tr.PID, Segment: tr.Segment + ".gone"},
	} {
		if err := s.hooks.OnPromote(within(t, limit), tr); !errors.As(err, new(*HookError)) {
			t.Errorf("%v: have %v", tr.Token, err)
		}
	}
	if s.count("start") != 0 {
		t.Error("it began")
	}
	second := tr
	second.Token = role.MakeToken(1, 2)
	if err := s.hooks.OnPromote(within(t, limit), second); err != nil {
		t.Fatal(err)
	}
	s.printed("start 1.2")
	if last := s.hooks.Status().LastError; last != "" {
		t.Errorf("all is well, and status says %q", last)
	}
}

func TestDutyThatGoesOnIsEnded(t *testing.T) {
	t.Run("demote", func(t *testing.T) {
		t.Parallel()
		_, tr := segment(t, 1)
		c := play(t, playClerk)
		c.Table = map[string]any{"ignore": true}
		s := raiseUp(t, c)
		if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
			t.Fatal(err)
		}
		s.printed("start 1.1")
		pid := s.hooks.Status().PID
		err := s.hooks.OnDemote(within(t, 2*time.Second), tr)
		if err == nil {
			t.Error("OnDemote succeeds")
		}
		if !gone(pid) {
			t.Error("OnDemote returned and the process lives")
		}
		s.printed("after its context ended: exiting")
	})
	t.Run("token lost", func(t *testing.T) {
		t.Parallel()
		seg, tr := segment(t, 1)
		c := play(t, playClerk)
		c.Table = map[string]any{"ignore": true}
		s := raiseUp(t, c)
		if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
			t.Fatal(err)
		}
		pid := s.hooks.Status().PID
		s.printed("start 1.1")
		lead(seg, 2)
		eventually.Holds(t, "the process ends itself", func() bool { return gone(pid) })
		<-s.replay
	})
}

func TestDutyThatFailsIsTriedAgain(t *testing.T) {
	_, tr := segment(t, 1)
	c := play(t, playClerk)
	c.Table = map[string]any{"fail": true}
	s := raiseUp(t, c)
	if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	s.printed("duty failed, next try in 1s: no paper")
	eventually.Holds(t, "a second start", func() bool { return s.count("start 1.1") == 2 })
	if err := s.hooks.OnDemote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	s.printed("end 1.1")
}

func TestDutyMayBeDoneEarly(t *testing.T) {
	_, tr := segment(t, 1)
	c := play(t, playClerk)
	c.Table = map[string]any{"done": true}
	s := raiseUp(t, c)
	for range 2 {
		if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.hooks.OnDemote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	s.end() // everything that was printed has been read
	if n := s.count("start 1.1"); n != 1 {
		t.Errorf("started %d times", n)
	}
}

// A duty whose process was killed goes on in the next one, with the same token.
func TestDutyGoesOnAfterACrash(t *testing.T) {
	_, tr := segment(t, 1)
	s := raiseUp(t, play(t, playClerk))
	if err := s.hooks.OnPromote(within(t, limit), tr); err != nil {
		t.Fatal(err)
	}
	s.printed("start 1.1")
	syscall.Kill(s.hooks.Status().PID, syscall.SIGKILL)
	<-s.replay
	if err := retry(t, func() error { return s.hooks.OnPromote(within(t, limit), tr) }); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "it starts again", func() bool { return s.count("clerk: start 1.1") == 2 })
	if st := s.hooks.Status(); st.LastError != "" {
		t.Errorf("it leads again, and status says %q", st.LastError)
	}
}
