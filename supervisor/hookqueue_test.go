package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// slowHooks take some time, or never return, as mode says.
type slowHooks struct {
	recorder
	busy sync.Mutex
	wait func(moment string, ctx context.Context) error
}

func (h *slowHooks) call(ctx context.Context, moment string, t role.Transition) error {
	if !h.busy.TryLock() {
		h.add("OVERLAP", t)
	} else {
		defer h.busy.Unlock()
	}
	h.add(moment, t)
	return h.wait(moment, ctx)
}

func (h *slowHooks) OnPromote(ctx context.Context, t role.Transition) error {
	return h.call(ctx, "promote", t)
}
func (h *slowHooks) OnDemote(ctx context.Context, t role.Transition) error {
	return h.call(ctx, "demote", t)
}

type inputs struct {
	mu  sync.Mutex
	all []input
}

func (in *inputs) tell(i input) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.all = append(in.all, i)
}

func (in *inputs) jobs() (jobs []inJob) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, i := range in.all {
		if j, ok := i.(inJob); ok {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func queueOf(t *testing.T, timeout time.Duration, hooks ...Hooks) (*hookQueue, *inputs) {
	var named []NamedHooks
	for i, h := range hooks {
		named = append(named, NamedHooks{Name: fmt.Sprint(i), Hooks: h})
	}
	in := &inputs{}
	q := newHookQueue(named, make([]HookEnv, len(hooks)), timeout, proc.MonoNow, in.tell)
	done := make(chan struct{})
	go func() { q.run(); close(done) }()
	t.Cleanup(func() {
		q.put(doJob{kind: momentStop})
		select {
		case <-done:
		case <-time.After(limit):
			t.Error("the queue did not end")
		}
	})
	return q, in
}

// TestHooksAlternate: promotions and demotions every few milliseconds, hooks
// that are slower: each is told, in order, and never two at a time.
func TestHooksAlternate(t *testing.T) {
	h := &slowHooks{wait: func(_ string, ctx context.Context) error {
		select {
		case <-time.After(time.Duration(rand.IntN(20)) * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	q, in := queueOf(t, time.Second, h)
	const terms = 40
	for term := range uint64(terms) {
		tr := role.Transition{Token: role.MakeToken(1, term+1), Worker: "w"}
		q.put(doJob{kind: momentPromote, t: tr})
		time.Sleep(2 * time.Millisecond)
		q.put(doJob{kind: momentDemote, t: tr})
	}
	eventually.Holds(t, "all jobs are through", func() bool { return len(in.jobs()) == 2*terms })
	calls := h.list()
	for term := range terms {
		token := role.MakeToken(1, uint64(term+1)).String()
		want := []string{"promote " + token + " w ", "demote " + token + " w "}
		if got := calls[2*term : 2*term+2]; !slices.Equal(got, want) {
			t.Fatalf("calls %d: %q, want %q", 2*term, got, want)
		}
	}
	if len(calls) != 2*terms {
		t.Errorf("%d calls", len(calls))
	}
}

// TestHungHookIsAbandoned: it costs its deadline once, and is not called
// beside itself; the other hook is told everything.
func TestHungHookIsAbandoned(t *testing.T) {
	release := make(chan struct{})
	hung := &slowHooks{wait: func(moment string, _ context.Context) error {
		if moment == "promote" {
			<-release
		}
		return nil
	}}
	other := &recorder{}
	q, in := queueOf(t, 50*time.Millisecond, hung, other)
	tr := role.Transition{Token: role.MakeToken(1, 1), Worker: "w"}
	q.put(doJob{kind: momentPromote, t: tr})
	q.put(doJob{kind: momentDemote, t: tr})
	eventually.Holds(t, "both jobs are through", func() bool { return len(in.jobs()) == 2 })
	jobs := in.jobs()
	if !errors.Is(jobs[0].err, errHookAbandon) || !errors.Is(jobs[1].err, errHookStuck) {
		t.Errorf("%v; %v", jobs[0].err, jobs[1].err)
	}
	if got := other.list(); !slices.Equal(got, []string{"promote 1.1 w ", "demote 1.1 w "}) {
		t.Errorf("the other hook: %q", got)
	}
	close(release)
	eventually.Holds(t, "the hook is called again once it has returned", func() bool {
		q.put(doJob{kind: momentDemote, t: tr})
		calls := hung.list()
		return strings.HasPrefix(calls[len(calls)-1], "demote")
	})
	if slices.Contains(hung.list(), "OVERLAP 1.1 w ") {
		t.Errorf("calls overlapped: %q", hung.list())
	}
}

// TestHungHookIsToldOfTheEnd: the demotion that could not be told while the hook
// hung comes before its next promotion; what it never heard of is left out.
func TestHungHookIsToldOfTheEnd(t *testing.T) {
	release := make(chan struct{})
	hung := &slowHooks{wait: func(moment string, ctx context.Context) error {
		if moment == "promote" {
			<-release
		}
		return nil
	}}
	q, in := queueOf(t, 20*time.Millisecond, hung)
	for term := range uint64(2) {
		tr := role.Transition{Token: role.MakeToken(1, term+1), Worker: "w"}
		q.put(doJob{kind: momentPromote, t: tr})
		eventually.Holds(t, "the promote is given up", func() bool { return len(in.jobs()) == int(2*term+1) })
		q.put(doJob{kind: momentDemote, t: tr})
	}
	eventually.Holds(t, "all jobs are through", func() bool { return len(in.jobs()) == 4 })
	close(release)
	tr := role.Transition{Token: role.MakeToken(1, 3), Worker: "w"}
	eventually.Holds(t, "the hook is called again once it has returned", func() bool {
		q.put(doJob{kind: momentPromote, t: tr})
		calls := hung.list()
		return strings.HasPrefix(calls[len(calls)-1], "promote 1.3")
	})
	if got := hung.list()[:3]; !slices.Equal(got, []string{"promote 1.1 w ", "demote 1.1 w ", "promote 1.3 w "}) {
		t.Errorf("%q", got)
	}
	hangs := 0
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, i := range in.all {
		if c, ok := i.(inCalled); ok && c.hung {
			hangs++
		}
	}
	if hangs != 1 {
		t.Errorf("%d calls count as hung, want the one that hung", hangs)
	}
}

func TestDemoteCutsAPromoteShort(t *testing.T) {
	h := &slowHooks{wait: func(moment string, ctx context.Context) error {
		if moment == "promote" {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}}
	q, in := queueOf(t, time.Hour, h)
	tr := role.Transition{Token: role.MakeToken(1, 1), Worker: "w"}
	q.put(doJob{kind: momentPromote, t: tr})
	eventually.Holds(t, "the promote is under way", func() bool { return len(h.list()) == 1 })
	q.put(doJob{kind: momentDemote, t: tr})
	eventually.Holds(t, "both jobs are through", func() bool { return len(in.jobs()) == 2 })
	if jobs := in.jobs(); !errors.Is(jobs[0].err, errHookEnded) || jobs[1].err != nil {
		t.Errorf("%v; %v", jobs[0].err, jobs[1].err)
	}
}

func TestPanickingHook(t *testing.T) {
	h := &slowHooks{wait: func(string, context.Context) error { panic("at the disco") }}
	q, in := queueOf(t, time.Second, h)
	q.put(doJob{kind: momentPromote})
	eventually.Holds(t, "the job is through", func() bool { return len(in.jobs()) == 1 })
	if err := in.jobs()[0].err; !errors.Is(err, errHookPanic) || !strings.Contains(err.Error(), "at the disco") {
		t.Errorf("%v", err)
	}
}
