package lease

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// A puppet is this test binary as another process that obeys orders: one line
// in, one line out ("ok ..." or "err ...").
const puppetEnv = "STANDBYD_LEASE_PUPPET"

// puppets are the parts that this binary can play, registered beside their tests.
var puppets = map[string]func() int{
	"puppet": func() int { return obey(os.Stdin, os.Stdout) },
}

func TestMain(m *testing.M) {
	part := os.Getenv(puppetEnv)
	if part == "" {
		os.Exit(m.Run())
	}
	play, ok := puppets[part]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such part:", part)
		os.Exit(2)
	}
	os.Exit(play())
}

// record is the value of most tests: 48 bytes whose sum shows a torn one.
type record struct {
	N    uint64
	Fill [4]uint64
	Sum  uint64
}

func rec(n uint64) record {
	r := record{N: n}
	for i := range r.Fill {
		r.Fill[i] = n * uint64(i+3)
	}
	r.Sum = r.sum()
	return r
}

func (r record) sum() uint64 {
	s := r.N * 0x9e3779b97f4a7c15
	for _, f := range r.Fill {
		s = s<<7 | s>>57
		s ^= f
	}
	return s
}

func (r record) torn() bool { return r.Sum != r.sum() }

// page is the largest payload, so that most kills and stops of a writer hit it
// in the middle of a copy. Each write of it counts N up by one.
type page struct {
	N       uint64
	Attempt uint64 // pid<<32 and the number of the write, of all that it tried
	Fill    [shm.MaxCell/8 - 3]uint64
	Sum     uint64
}

func pageOf(n, attempt uint64) page {
	p := page{N: n, Attempt: attempt}
	for i := range p.Fill {
		p.Fill[i] = n ^ attempt<<9 ^ uint64(i)
	}
	p.Sum = p.sum()
	return p
}

func (p *page) sum() uint64 {
	s := p.N*0x9e3779b97f4a7c15 ^ p.Attempt
	for _, f := range p.Fill {
		s = (s<<7 | s>>57) ^ f
	}
	return s
}

// halfWrite is a write that stopped in the middle: what write does, up to
// within its stores.
type halfWrite struct {
	p    *Payload
	rest record
}

func beginHalf(p *Payload, owner uint64, r record) (*halfWrite, error) {
	p.busy.lock()
	if !p.begin(owner) {
		defer p.busy.unlock()
		return nil, p.why
	}
	shm.StoreWords(p.words()[:3], shm.Bytes(&r)[:24])
	return &halfWrite{p, r}, nil
}

// words are those of the cell to fill.
func (p *Payload) words() []atomic.Uint64 {
	at := p.next & cellBits >> 32
	return p.seg.Writers[at/2].Cells[at%2]
}

func (h *halfWrite) finish() error {
	defer h.p.busy.unlock()
	shm.StoreWords(h.p.words()[3:], shm.Bytes(&h.rest)[24:])
	if !h.p.publish() {
		return h.p.why
	}
	return nil
}

var puppetErrors = map[string]error{
	"held": ErrHeld, "not-owner": ErrNotOwner, "invalid-pid": ErrInvalidPID, "lost": ErrLost,
	"fenced": ErrFenced, "no-slot": ErrNoWriterSlot, "payload": ErrPayload,
}

func obey(in io.Reader, out io.Writer) int {
	var (
		l     *OwnerLease[record]
		claim *Claim[record]
		half  *halfWrite
		sc    = bufio.NewScanner(in)
	)
	for sc.Scan() {
		var verb string
		var a, b uint64
		fmt.Sscan(sc.Text(), &verb, &a, &b)
		pid := uint32(a)
		var reply []any
		var err error
		switch verb {
		case "open":
			l, err = Open[record](strings.TrimPrefix(sc.Text(), "open "))
		case "close":
			err = l.Close()
		case "try":
			var t uint64
			t, err = l.TryAcquire(pid, b)
			reply = append(reply, t)
		case "release":
			err = l.Release(pid)
		case "beat":
			err = l.Beat(pid)
		case "read":
			var r record
			r, err = l.ReadAsOwner(pid)
			reply = append(reply, r.N, r.torn())
		case "write":
			err = l.WriteAsOwner(pid, rec(b))
		case "snapshot":
			r, t := l.Snapshot()
			reply = append(reply, r.N, t, r.torn())
		case "half":
			half, err = beginHalf(l.view.p, shm.PackOwner(pid, l.e.OwnTerm(pid)), rec(b))
		case "finish":
			err = half.finish()
		case "acquire":
			claim, err = l.Acquire(context.Background())
			if err == nil {
				reply = append(reply, claim.Term())
			}
		case "claim-write":
			err = claim.Write(rec(a))
		case "claim-check":
			err = claim.Check()
		case "claim-release":
			err = claim.Release(context.Background())
		case "claim-lost":
			<-claim.Done()
		default:
			err = fmt.Errorf("unknown order %q", verb)
		}
		if err != nil {
			name := err.Error()
			for n, known := range puppetErrors {
				if errors.Is(err, known) {
					name = n
				}
			}
			fmt.Fprintln(out, "err", name)
			continue
		}
		fmt.Fprintln(out, append([]any{"ok"}, reply...)...)
	}
	return 0
}

type puppet struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out chan string
}

// startPuppet starts a process that has opened path.
func startPuppet(t *testing.T, path string) *puppet {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), puppetEnv+"=puppet")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &puppet{t, cmd, in, make(chan string)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			p.out <- sc.Text()
		}
		close(p.out)
	}()
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		for range p.out {
		}
		<-done
		cmd.Wait()
	})
	p.want("ok", "open "+path)
	return p
}

// tell gives an order without waiting for the answer.
func (p *puppet) tell(order ...any) { fmt.Fprintln(p.in, order...) }

// answer waits for the answer to an order that was told.
func (p *puppet) answer() string {
	p.t.Helper()
	select {
	case line, ok := <-p.out:
		if !ok {
			p.t.Fatal("puppet is gone")
		}
		return line
	case <-time.After(time.Minute):
		p.t.Fatal("puppet did not answer within a minute")
	}
	return ""
}

func (p *puppet) do(order ...any) string {
	p.t.Helper()
	p.tell(order...)
	return p.answer()
}

func (p *puppet) want(answer string, order ...any) {
	p.t.Helper()
	if got := p.do(order...); got != answer {
		p.t.Fatalf("pid %d: %v: %q, want %q", p.cmd.Process.Pid, fmt.Sprint(order...), got, answer)
	}
}

// kill ends the puppet as kill -9 does, and waits until it is gone.
func (p *puppet) kill() {
	p.t.Helper()
	p.cmd.Process.Kill()
	p.cmd.Process.Wait()
}

func (p *puppet) pid() uint32 { return uint32(p.cmd.Process.Pid) }

func newLease(t testing.TB, opts ...Option) *OwnerLease[record] {
	t.Helper()
	l, err := Create(t.TempDir()+"/lease", rec(1), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func reopen[T any](t testing.TB, l *OwnerLease[T]) *OwnerLease[T] {
	t.Helper()
	again, err := Open[T](l.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	return again
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t testing.TB, err error, wanted ...error) {
	t.Helper()
	if !slices.ContainsFunc(wanted, func(w error) bool { return errors.Is(err, w) }) {
		t.Fatalf("error is %v, want one of %v", err, wanted)
	}
}

func wantValue(t testing.TB, l *OwnerLease[record], n, term uint64) {
	t.Helper()
	v, at := l.Snapshot()
	if v != rec(n) || at != term {
		t.Fatalf("snapshot is %v of term %d, want value %d of term %d", v, at, n, term)
	}
}
