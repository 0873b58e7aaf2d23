//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/bench/page"
)

func TestMain(m *testing.M) {
	var err error
	if self, err = os.Executable(); err != nil {
		panic(err)
	}
	if part := os.Getenv(partEnv); part != "" {
		if err := worker(part); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every way is measured, or says why not: one round of each, under a small
// leader that is killed, and with SOAK one that hangs or hands over, too.
func TestEveryWay(t *testing.T) {
	tools = t.TempDir()
	standbyd = filepath.Join(tools, "standbyd")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", standbyd, "../../cmd/standbyd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build standbyd: %v\n%s", err, out)
	}
	dir, err := os.MkdirTemp("", "fo") // short: there are sockets below
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, each: limit, results: results{}}
	for _, sc := range scenarios() {
		if sc.name != small && (os.Getenv("SOAK") == "" || sc.name != "switchover" && sc.name != "hang, tick 100ms") {
			continue
		}
		sc.size = miB
		for _, r := range rows() {
			if !r.in(sc) || strings.HasSuffix(r.name, ", nice") || strings.HasSuffix(r.name, ", fifo") {
				continue // like the others, and the test runs beside many
			}
			us, err := b.play(t.Context(), sc, r, 1)
			switch {
			case errors.Is(err, errSkip):
				t.Logf("%s, %s: %v", sc.name, r.name, err)
			case err != nil:
				t.Errorf("%s, %s: %v", sc.name, r.name, err)
			case len(us) != 1 || us[0] <= 0:
				t.Errorf("%s, %s: measured %v", sc.name, r.name, us)
			}
		}
	}
}

// The C program and this one look at the same words.
func TestWaiterKnowsTheProbe(t *testing.T) {
	want := fmt.Sprintf("enum { LEADER = %d, STAMP = %d, PAYLOAD = %d, SLOTS = %d, WORDS = %d };", leaderWord, stampWord, payloadWord, slotWord, probeWords)
	if !strings.Contains(waiterSource, want) {
		t.Errorf("locks/waiter.c does not say %s", want)
	}
}

func TestQuantiles(t *testing.T) {
	v := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0.5: 2, 0.9: 4, 0.99: 4, 1: 4, 0.25: 1} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v of %v is %v, want %v", q, v, got, want)
		}
	}
}

func TestBarIsAsWideAsItsAxis(t *testing.T) {
	for _, c := range [][2]float64{{1, 1}, {10, 100}, {200, 1e5}, {1e8, 1e9}} {
		if got := bar(c[0], c[1]); len([]rune(got)) != decade*decades || strings.Count(got, "●") != 1 {
			t.Errorf("bar(%v, %v) is %q", c[0], c[1], got)
		}
	}
	if got := bar(100, 1000); !strings.HasPrefix(got, "·     ●──────") {
		t.Errorf("100 µs to 1 ms is %q", got)
	}
}

// Samples of an earlier run are counted in, and not those of other machines.
func TestSamplesAddUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples.json")
	r := results{}
	r.of("a", "b").Micros = []float64{1, 2}
	machine := machineOf("here")
	if err := r.save(file, machine, 5e9); err != nil {
		t.Fatal(err)
	}
	again := results{}
	if _, err := again.load(file, machineOf("here")); err != nil {
		t.Fatal(err)
	}
	if got := again.of("a", "b").Micros; len(got) != 2 || again.took(0) != 5e9 {
		t.Errorf("loaded %v, %v", got, again.took(0))
	}
	if _, err := again.load(file, machineOf("elsewhere")); err == nil {
		t.Error("samples of another machine are taken")
	}
}

func machineOf(system string) page.Machine { return page.Machine{System: system} }
