//go:build linux

package conformance

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/test/eventually"
)

// duty is what the worker does while it leads.
type duty struct {
	leads string
	serve bool
	drain time.Duration
	guard string
}

func (d duty) lead(ctx context.Context, l *coord.Leadership) error {
	if d.leads != "" {
		f, err := os.OpenFile(d.leads, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		how := "alone"
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			how = "beside-another"
		}
		fmt.Fprintf(f, "%s %s %d %d\n", how, l.Member().Name(), os.Getpid(), uint64(l.Token()))
	}
	if d.serve {
		ln, err := l.Listener("http")
		if err != nil {
			return err
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })}
		go s.Serve(ln)
		defer s.Shutdown(context.Background())
	}
	if d.guard != "" {
		if err := writeGuarded(ctx, l, d.guard); err != nil {
			return err
		}
	}
	<-ctx.Done()
	time.Sleep(d.drain)
	return nil
}

// leadership is one call of a worker's lead.
type leadership struct {
	worker string
	pid    int
	token  role.Token
}

// leaderships reads what workers with -leads $DIR/leads have written. That two
// of them led at once, or with a token that did not rise, is an error.
func (d *daemon) leaderships() (all []leadership) {
	d.t.Helper()
	b, _ := os.ReadFile(d.dir + "/leads")
	for line := range strings.Lines(string(b)) {
		var l leadership
		var how string
		var token uint64
		if n, err := fmt.Sscan(line, &how, &l.worker, &l.pid, &token); n != 4 {
			d.t.Fatalf("leads: %q: %v", line, err)
		}
		l.token = role.Token(token)
		if how != "alone" {
			d.t.Errorf("two led at once:\n%s", b)
		}
		if len(all) > 0 && l.token <= all[len(all)-1].token {
			d.t.Errorf("a token did not rise:\n%s", b)
		}
		all = append(all, l)
	}
	return all
}

// led waits for the nth leadership, counted from 1.
func (d *daemon) led(n int) leadership {
	d.t.Helper()
	var all []leadership
	eventually.Holds(d.t, fmt.Sprintf("somebody leads for the %dth time", n), func() bool {
		all = d.leaderships()
		return len(all) >= n
	})
	return all[n-1]
}
