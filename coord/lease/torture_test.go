//go:build unix

package lease

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

func init() { puppets["torturer"] = torturer }

// torturer owns and writes as often as it can, until it is killed. What it
// says is only what it was told by the lease:
//
//	w FIRST LAST   the writes FIRST to LAST succeeded, each of the value after
//	               the one that was read as owner
//	f ATTEMPT      the write with this number, of all that it tried, failed
//	torn           it read a torn value
func torturer() int {
	l, err := Open[page](os.Getenv("STANDBYD_LEASE_PATH"))
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	pid := uint32(os.Getpid())
	attempt := uint64(pid) << 32
	for {
		if _, err := l.TryAcquire(pid, 3); err != nil {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		v, err := l.ReadAsOwner(pid)
		if err != nil {
			continue
		}
		if v.Sum != v.sum() {
			fmt.Println("torn")
		}
		first, last := v.N+1, v.N
		for range 1 + rand.IntN(60) {
			attempt++
			err = l.WriteAsOwner(pid, pageOf(last+1, attempt))
			if err != nil {
				break
			}
			last++
			l.Beat(pid)
		}
		switch {
		case err != nil && err != ErrNotOwner:
			fmt.Println("write:", err)
			return 1
		case err != nil:
			fmt.Println("f", attempt)
		}
		if last >= first {
			fmt.Println("w", first, last)
		}
		if rand.IntN(2) == 0 {
			l.Release(pid)
		}
	}
}

// verdicts collects what the torturers said.
type verdicts struct {
	mu     sync.Mutex
	acked  map[uint64]uint64 // N -> writer
	failed []uint64          // attempts
	faults []string
}

func (v *verdicts) hear(writer uint64, line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var a, b uint64
	if n, _ := fmt.Sscanf(line, "w %d %d", &a, &b); n == 2 {
		for ; a <= b; a++ {
			if w, twice := v.acked[a]; twice {
				v.faults = append(v.faults, fmt.Sprintf("value %d was acknowledged to writer %d and to writer %d: one of them is lost", a, w, writer))
			}
			v.acked[a] = writer
		}
		return
	}
	if n, _ := fmt.Sscanf(line, "f %d", &a); n == 1 {
		v.failed = append(v.failed, a)
		return
	}
	v.faults = append(v.faults, fmt.Sprintf("writer %d: %s", writer, line))
}

// victim is a torturer that is running.
type victim struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func startTorturer(t *testing.T, path string, v *verdicts) *victim {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), puppetEnv+"=torturer", "STANDBYD_LEASE_PATH="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &victim{cmd, make(chan struct{})}
	go func() {
		defer close(p.done)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			v.hear(uint64(cmd.Process.Pid), sc.Text())
		}
	}()
	return p
}

func (p *victim) kill() {
	p.cmd.Process.Kill()
	<-p.done
	p.cmd.Wait()
}

// TestTorture: several processes take the lease from each other by pid and by
// staleness while they are killed and stopped at random. No value is torn,
// none goes back, none that was acknowledged is lost, none that was refused
// appears.
func TestTorture(t *testing.T) {
	duration := 4 * time.Second
	if testing.Short() {
		duration = time.Second
	}
	l, err := Create(t.TempDir()+"/lease", pageOf(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v := &verdicts{acked: map[uint64]uint64{}}
	const writers = 4
	var victims [writers]*victim
	for i := range victims {
		victims[i] = startTorturer(t, l.Path(), v)
	}
	stopReader := make(chan struct{})
	seen := map[uint64]bool{}
	var reader sync.WaitGroup
	reader.Go(func() {
		var last, lastTerm uint64
		for {
			select {
			case <-stopReader:
				return
			default:
			}
			p, term := l.Snapshot()
			if p.Sum != p.sum() {
				t.Errorf("snapshot of value %d is torn", p.N)
				return
			}
			if p.N < last || term < lastTerm {
				t.Errorf("went back from value %d of term %d to value %d of term %d", last, lastTerm, p.N, term)
				return
			}
			last, lastTerm = p.N, term
			seen[p.Attempt] = true
			time.Sleep(50 * time.Microsecond)
		}
	})
	kills, stops := 0, 0
	for end := time.Now().Add(duration); time.Now().Before(end) && !t.Failed(); {
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
		l.TickEpoch()
		i := rand.IntN(writers)
		switch rand.IntN(10) {
		case 0:
			kills++
			victims[i].kill()
			victims[i] = startTorturer(t, l.Path(), v)
		case 1, 2, 3:
			stops++
			p := victims[i].cmd.Process
			p.Signal(syscall.SIGSTOP)
			time.AfterFunc(time.Duration(rand.IntN(40))*time.Millisecond, func() { p.Signal(syscall.SIGCONT) })
		}
	}
	for _, p := range victims {
		p.kill()
	}
	close(stopReader)
	reader.Wait()
	final, term := l.Snapshot()
	t.Logf("%d kills, %d stops, %d terms, %d values, %d acknowledged, %d refused, %d read", kills, stops, term, final.N, len(v.acked), len(v.failed), len(seen))
	for _, f := range v.faults {
		t.Error(f)
	}
	for n := range v.acked {
		if n > final.N {
			t.Errorf("value %d was acknowledged, the last one is %d", n, final.N)
		}
	}
	for _, a := range v.failed {
		if seen[a] {
			t.Errorf("write %d of pid %d was refused, and read", a&(1<<32-1), a>>32)
		}
	}
	if final.N == 0 || len(v.acked) == 0 {
		t.Error("nobody wrote anything")
	}
}
