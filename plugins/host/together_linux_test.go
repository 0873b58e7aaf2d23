//go:build linux

package host

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/plugins"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// scribe writes the beginning and the end of every hook into one file, in
// which the workers write those of their leads.
type scribe struct{ file string }

func (s *scribe) Configure(_ context.Context, table plugins.Table) error {
	var c struct{ File string }
	err := table.Decode(&c)
	s.file = c.File
	return err
}

func (s *scribe) hook(name string, t plugins.Transition) error {
	write(s.file, "%s(%s) begins", name, t.Token)
	time.Sleep(20 * time.Millisecond) // so that what may overlap does
	write(s.file, "%s(%s) ends", name, t.Token)
	return nil
}

func (s *scribe) OnPromote(_ context.Context, t plugins.Transition) error {
	return s.hook("OnPromote", t)
}
func (s *scribe) OnDemote(_ context.Context, t plugins.Transition) error {
	return s.hook("OnDemote", t)
}
func (s *scribe) OnLeaderChange(_ context.Context, t plugins.Transition) error {
	return s.hook("OnLeaderChange", t)
}

type gatedScribe struct{ scribe }

func (s *gatedScribe) PrePromote(_ context.Context, t plugins.Transition) error {
	return s.hook("PrePromote", t)
}

var (
	playScribe      = puppet("scribe", func() { plugins.Serve(&scribe{}) })
	playGatedScribe = puppet("gated", func() { plugins.Serve(&gatedScribe{}) })
	playWorker      = puppet("worker", func() {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		file := os.Getenv("TEST_FILE")
		err := coord.Run(ctx, func(ctx context.Context, l *coord.Leadership) error {
			write(file, "lead(%s) begins", l.Token())
			<-ctx.Done()
			write(file, "lead(%s) ends", l.Token())
			return nil
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
)

// write appends one line in one system call, so that the lines of several
// processes stand in the order of time.
func write(file, format string, args ...any) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(f, format+"\n", args...)
	f.Close()
}

// The table of docs/plugin-contract.md, against a real role: leaders that
// crash, hang and step down.
func TestOrderOfLeadsAndHooks(t *testing.T) {
	table, err := os.ReadFile("testdata/order.txt")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/plugin-contract.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), string(table)) {
		t.Error("docs/plugin-contract.md does not hold testdata/order.txt as it is")
	}
	for _, c := range []struct{ name, puppet string }{{"without a gate", playScribe}, {"with a gate", playGatedScribe}} {
		t.Run(c.name, func(t *testing.T) {
			file := observe(t, c.puppet)
			checkOrder(t, file, string(table), c.puppet == playGatedScribe)
		})
	}
}

// observe runs a role through four changes of leader and returns the file.
func observe(t *testing.T, plugin string) string {
	dir := shortdir.New(t)
	file := filepath.Join(dir, "order")
	conf := play(t, plugin)
	conf.Table = map[string]any{"file": file}
	hooks, err := New(conf)
	if err != nil {
		t.Fatal(err)
	}
	puppetUsed.Store(playWorker, true)
	r := supervisor.DefaultRole()
	r.Name, r.Command, r.Dir = "kv", []string{self(t)}, dir
	r.Env = map[string]string{puppetKey: playWorker, "TEST_FILE": file}
	r.Tick, r.RestartDelay, r.Burst, r.Failovers = 50*time.Millisecond, 10*time.Millisecond, 1000, 1000
	r.Hooks = []supervisor.NamedHooks{hooks}
	sup, err := supervisor.New(supervisor.Config{RuntimeDir: dir + "/run", StateDir: dir + "/state", Roles: []supervisor.RoleConfig{r}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sup.Run(ctx) }()
	defer func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("supervisor: %v", err)
			}
		case <-time.After(limit):
			t.Error("the supervisor does not end")
		}
	}()

	var last role.Token
	var snap supervisor.RoleStatus
	settled := func() bool {
		s := sup.Snapshot()
		if len(s.Roles) != 1 {
			return false
		}
		snap = s.Roles[0]
		if snap.Token <= last || len(snap.Plugins) != 1 || snap.Plugins[0].State != "leading" || snap.Plugins[0].Token != snap.Token {
			return false
		}
		ready := 0
		for _, w := range snap.Workers {
			if w.Ready {
				ready++
			}
		}
		text, _ := os.ReadFile(file)
		return ready == len(snap.Workers) && strings.Contains(string(text), fmt.Sprintf("OnLeaderChange(%s) ends", snap.Token)) &&
			strings.Contains(string(text), fmt.Sprintf("lead(%s) begins", snap.Token))
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGKILL, syscall.SIGTERM} {
		eventually.Holds(t, "the role is led, its plugin knows, and everybody is ready", settled)
		last = snap.Token
		if err := syscall.Kill(snap.LeaderPID, sig); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "the role is led at last", settled)
	return file
}

// checkOrder judges every pair of neighbouring leaderships by the table.
func checkOrder(t *testing.T, file, table string, gated bool) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{} // "OnDemote(1.1) ends" -> line
	var tokens []string
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if _, ok := at[line]; !ok {
			at[line] = i
		}
		if token, ok := strings.CutPrefix(line, "lead("); ok && strings.HasSuffix(line, " begins") {
			tokens = append(tokens, strings.TrimSuffix(token, ") begins"))
		}
	}
	if len(tokens) < 5 || !slices.IsSortedFunc(tokens, func(a, b string) int {
		x, _ := role.ParseToken(a)
		y, _ := role.ParseToken(b)
		return int(int64(x) - int64(y))
	}) {
		t.Errorf("leads of tokens %v", tokens)
	}
	// Leaders that were killed or stopped write no end; that they are dead
	// before the next lead is the fence's to show.
	row := regexp.MustCompile(`^(\w+)\((\w)\) (has ended|has returned|begins) +before +(\w+)\((\w)\)(?: begins)? *(.*)$`)
	pairs, rules := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("row %q is not understood", line)
		}
		words := strings.Fields(m[6])
		word := words[len(words)-1]
		if !gated {
			if len(words) < 2 {
				continue // only with a gate
			}
			word = words[0]
		}
		if word != "always" {
			continue
		}
		rules++
		for i := 1; i < len(tokens); i++ {
			name := func(hook, which, edge string) string {
				token := tokens[i]
				if which == "T" {
					token = tokens[i-1]
				}
				return hook + "(" + token + ") " + edge
			}
			first, second := name(m[1], m[2], "ends"), name(m[4], m[5], "begins")
			a, okA := at[first]
			b, okB := at[second]
			switch {
			case !okA && m[1] == "lead", !okB && m[4] == "OnLeaderChange":
				// Killed; or called off because that leadership ended too.
			case !okA || !okB:
				t.Errorf("%q is there: %v, %q is there: %v", first, okA, second, okB)
			case a > b:
				t.Errorf("%q comes after %q", first, second)
			default:
				pairs++
			}
		}
	}
	if rules < 3 || pairs < 2*rules {
		t.Errorf("%d pairs for %d rules", pairs, rules)
	}
	if t.Failed() {
		t.Log("\n" + string(b))
	}
}
