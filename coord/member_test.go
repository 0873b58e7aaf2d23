package coord

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

const patience = 60 * time.Second

func join(t testing.TB, opts ...Option) *Member {
	t.Helper()
	return joinAt(t, filepath.Join(t.TempDir(), "segment"), opts...)
}

func joinAt(t testing.TB, path string, opts ...Option) *Member {
	t.Helper()
	m, err := JoinFile(t.Context(), path, append([]Option{WithTick(10*time.Millisecond, 20)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func campaign(t testing.TB, m *Member) *Leadership {
	t.Helper()
	if err := m.Ready(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	l, err := m.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wait(t testing.TB, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("not in %v: %s", patience, what)
	}
}

func TestCampaignAndResign(t *testing.T) {
	m := join(t, WithName("one"))
	if i, err := m.Leader(); !errors.Is(err, ErrNoLeader) || i != (Info{}) {
		t.Errorf("before: %+v, %v", i, err)
	}
	l := campaign(t, m)
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if l.Token().Term() != 1 || l.Predecessor().PID() != 0 {
		t.Errorf("token %v, predecessor %d", l.Token(), l.Predecessor().PID())
	}
	if err := l.Predecessor().Gone(t.Context()); err != nil {
		t.Error(err)
	}
	i, err := m.Leader()
	if want := (Info{Name: "one", PID: os.Getpid(), Token: l.Token(), Active: true, Self: true}); err != nil || i != want {
		t.Errorf("leader %+v, %v, want %+v", i, err, want)
	}
	if _, err := m.Campaign(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("a second campaign: %v, want ErrBusy", err)
	}
	if err := m.Run(t.Context(), nil); !errors.Is(err, ErrBusy) {
		t.Errorf("Run beside it: %v, want ErrBusy", err)
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	if !errors.Is(l.Check(), ErrFenced) || !errors.Is(context.Cause(l.Context()), ErrResigned) {
		t.Errorf("after: check %v, cause %v", l.Check(), context.Cause(l.Context()))
	}
	if err := l.Resign(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("a second Resign: %v", err)
	}
	if i, err := m.Leader(); !errors.Is(err, ErrNoLeader) || i.Token != l.Token() {
		t.Errorf("after: %+v, %v", i, err)
	}
	if l2 := campaign(t, m); l2.Token() <= l.Token() {
		t.Errorf("token %v after %v", l2.Token(), l.Token())
	}
	m.Close()
	if !errors.Is(l.Check(), ErrFenced) {
		t.Error("a check after Close passes")
	}
	if _, err := m.Campaign(t.Context()); !errors.Is(err, ErrBusy) && !errors.Is(err, ErrClosed) {
		t.Errorf("campaign after Close: %v", err)
	}
	if err := m.Ready(); !errors.Is(err, ErrClosed) {
		t.Errorf("Ready after Close: %v", err)
	}
	m.SetCandidate(Candidate{})
	m.Pulse()
	m.Idle()
}

func TestNoContentionBeforeReady(t *testing.T) {
	m := join(t)
	ctx, stop := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("enough"))
	defer stop()
	if _, err := m.Campaign(ctx); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("campaign before Ready: %v", err)
	}
	if _, term := m.elec.Owner(); term != 0 {
		t.Errorf("it claimed term %d", term)
	}
	campaign(t, m)
}

func TestOneMemberPerProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	m := joinAt(t, path)
	if _, err := JoinFile(t.Context(), path); !errors.Is(err, ErrAlreadyMember) {
		t.Errorf("a second join: %v, want ErrAlreadyMember", err)
	}
	m.Close()
	campaign(t, joinAt(t, path))
}

func TestCloseEndsRun(t *testing.T) {
	m := join(t)
	leads, result := make(chan struct{}), make(chan error, 1)
	var cause error
	go func() {
		result <- m.Run(t.Context(), func(ctx context.Context, l *Leadership) error {
			close(leads)
			<-ctx.Done()
			cause = context.Cause(ctx)
			if err := l.Check(); err != nil {
				t.Errorf("the lease was released before lead returned: %v", err)
			}
			return nil
		})
	}()
	wait(t, "it leads", leads)
	m.Close()
	if err := <-result; !errors.Is(err, ErrClosed) || !errors.Is(cause, ErrClosed) {
		t.Errorf("Run returned %v, cause %v", err, cause)
	}
}

func TestCallbacks(t *testing.T) {
	var started, stopped atomic.Int32
	news := make(chan string, 16)
	leads := make(chan struct{})
	m := join(t, WithName("one"), WithCallbacks(Callbacks{
		OnStartedLeading: func(ctx context.Context) {
			started.Add(1)
			close(leads)
			<-ctx.Done()
			if stopped.Load() != 0 {
				t.Error("stopped before it had returned")
			}
		},
		OnStoppedLeading: func() { stopped.Add(1) },
		OnNewLeader:      func(name string) { news <- name },
	}))
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- m.Run(ctx, nil) }()
	wait(t, "it leads", leads)
	if name := <-news; name != "one" {
		t.Errorf("new leader %q", name)
	}
	stop()
	if err := <-result; err != nil || started.Load() != 1 || stopped.Load() != 1 {
		t.Errorf("Run: %v; started %d, stopped %d", err, started.Load(), stopped.Load())
	}
}

func TestOnStoppedLeadingOnlyAfterLeading(t *testing.T) {
	m := join(t, WithCallbacks(Callbacks{OnStoppedLeading: func() { t.Error("called without having led") }}),
		WithCandidate(Candidate{NoFailover: true}))
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	if err := m.Run(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestObserveLatestWins(t *testing.T) {
	m := join(t)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	const rounds = 50
	var last Info
	var begun sync.Once
	first, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := range m.Observe(ctx) {
			if i.Token < last.Token {
				t.Errorf("token %v after %v", i.Token, last.Token)
			}
			begun.Do(func() { close(first) })
			last = i
			time.Sleep(5 * time.Millisecond) // a slow one
			if i.Token.Term() == rounds && i.PID == 0 {
				return
			}
		}
	}()
	for range rounds {
		l := campaign(t, m)
		if l.Token().Term() == 1 {
			wait(t, "it observes", first)
		}
		l.Resign(ctx)
	}
	wait(t, "it saw the end", done)
	if last.Token.Term() != rounds || last.PID != 0 {
		t.Errorf("last seen %+v", last)
	}
}

func TestRemovedSegmentEndsRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	m := joinAt(t, path)
	leads := make(chan *Leadership, 1)
	result := make(chan error, 1)
	go func() {
		result <- m.Run(t.Context(), func(ctx context.Context, l *Leadership) error {
			leads <- l
			<-ctx.Done()
			if c := context.Cause(ctx); !errors.Is(c, ErrSegmentGone) {
				t.Errorf("cause %v", c)
			}
			if err := l.Check(); !errors.Is(err, ErrFenced) {
				t.Errorf("check %v", err)
			}
			return nil
		})
	}()
	<-leads
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-result:
		if !errors.Is(err, ErrSegmentGone) || !errors.Is(err, shm.ErrGone) {
			t.Errorf("Run returned %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Run goes on without a segment")
	}
	if _, err := m.Leader(); !errors.Is(err, ErrSegmentGone) {
		t.Errorf("Leader: %v", err)
	}
	m.Close()
	campaign(t, joinAt(t, path)) // a new file, a new mapping
}

// TestLostSeatEndsRun: a member without a seat does not lead, since nobody
// could prove its death, and gives back what it had.
func TestLostSeatEndsRun(t *testing.T) {
	m := join(t)
	leads, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- m.Run(t.Context(), func(ctx context.Context, l *Leadership) error {
			close(leads)
			<-ctx.Done()
			if c := context.Cause(ctx); !errors.Is(c, ErrSeatLost) {
				t.Errorf("cause %v", c)
			}
			return nil
		})
	}()
	wait(t, "it leads", leads)
	m.mapped.seg.Seats[m.seat.Number()].Phase.Store(0)
	select {
	case err := <-result:
		if !errors.Is(err, ErrSeatLost) {
			t.Errorf("Run returned %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Run goes on without a seat")
	}
	if pid, _ := m.elec.Owner(); pid != 0 {
		t.Error("it has not released the lease")
	}
}

func TestWarmupFails(t *testing.T) {
	failed := errors.New("no data")
	m := join(t, WithWarmup(func(context.Context, *Member) error { return failed }))
	if err := m.Run(t.Context(), nil); !errors.Is(err, failed) {
		t.Errorf("Run: %v", err)
	}
	if _, term := m.elec.Owner(); term != 0 {
		t.Error("it contended")
	}
}

func TestFailingCheckIsAHang(t *testing.T) {
	var sick atomic.Bool
	m := join(t, WithProgressTimeout(100*time.Millisecond), WithCheck(func() error {
		if sick.Load() {
			return errors.New("sick")
		}
		return nil
	}))
	l := campaign(t, m)
	if !errors.Is(l.Check(), nil) {
		t.Error(l.Check())
	}
	sick.Store(true)
	wait(t, "the hang is seen", l.Context().Done())
	if c := context.Cause(l.Context()); !errors.Is(c, ErrStalled) {
		t.Errorf("cause %v", c)
	}
}

// TestGoroutinesEnd: nothing of a member runs once Close has returned.
func TestGoroutinesEnd(t *testing.T) {
	for range 5 {
		m := join(t, WithCheck(func() error { return nil }), WithCallbacks(Callbacks{OnNewLeader: func(string) {}}))
		ctx, stop := context.WithCancel(t.Context())
		leads, result := make(chan struct{}), make(chan error, 1)
		go func() {
			result <- m.Run(ctx, func(ctx context.Context, _ *Leadership) error {
				close(leads)
				<-ctx.Done()
				return nil
			})
		}()
		wait(t, "it leads", leads)
		stop()
		<-result
		m.Close()
	}
	// A goroutine that was told to end may still be on its way out.
	for late := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		var b bytes.Buffer
		pprof.Lookup("goroutine").WriteTo(&b, 2)
		var left []string
		for g := range strings.SplitSeq(b.String(), "\n\n") {
			if strings.Contains(g, "coord.(*Member)") || strings.Contains(g, "coord.spawn") || strings.Contains(g, "coord.(*notifier)") || strings.Contains(g, "proc.(*Handle)") {
				left = append(left, g)
			}
		}
		if left == nil {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("left after Close:\n%s", strings.Join(left, "\n\n"))
		}
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	m := join(t)
	l := campaign(t, m)
	if n := testing.AllocsPerRun(1000, func() {
		if l.Check() != nil {
			t.Fatal("fenced")
		}
	}); n != 0 {
		t.Errorf("Check allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() { m.Pulse() }); n != 0 {
		t.Errorf("Pulse allocates %v times", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	l := campaign(b, join(b))
	b.ReportAllocs()
	for b.Loop() {
		if l.Check() != nil {
			b.Fatal("fenced")
		}
	}
}

func BenchmarkPulse(b *testing.B) {
	m := join(b)
	b.ReportAllocs()
	for b.Loop() {
		m.Pulse()
	}
}

// TestNamesakeIsBuried: a dead process that had this one's pid, or an earlier
// program of this process, holds neither lease nor active word any longer.
func TestNamesakeIsBuried(t *testing.T) {
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	dead := self
	dead.Start++
	for name, id := range map[string]proc.Identity{"pid reused": dead, "execve": self} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "segment")
			p := shm.DefaultParams()
			p.Fence, p.Grace = shm.FenceProcess, 1<<20 // staleness does not help
			seg, err := shm.Create(path, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer seg.Close()
			seat, err := heartbeat.NewTable(seg).Join(id, heartbeat.JoinOptions{})
			if err != nil {
				t.Fatal(err)
			}
			e := election.Attach(seg)
			g, err := e.Claim(election.Attempt{PID: uint32(id.PID), Seat: seat.Number(), Grace: p.Grace})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Promote(t.Context(), election.Promotion{PID: uint32(id.PID), Term: g.Term}); err != nil {
				t.Fatal(err)
			}
			m := joinAt(t, path)
			if pid, _ := m.elec.Owner(); pid != 0 {
				t.Errorf("pid %d still owns the lease", pid)
			}
			if pid, _ := m.elec.Active(); pid != 0 {
				t.Errorf("pid %d still is active", pid)
			}
			if l := campaign(t, m); l.Token().Term() != 2 {
				t.Errorf("leads in term %d", l.Token().Term())
			}
		})
	}
}
