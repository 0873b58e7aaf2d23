//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/plugins"
)

// talker says on standard error what it is told, and can be told to misbehave.
type talker struct {
	conf struct {
		Veto  string // PrePromote's answer
		Hang  string // the hook that never returns
		Crash string // the hook that ends the process
		Fail  string // the hook that answers with an error
		Every time.Duration
	}
}

func (h *talker) say(ctx context.Context, what string, t plugins.Transition) error {
	fmt.Fprintf(os.Stderr, "%s %s %s\n", what, t.Token, t.Reason)
	if deadline, ok := ctx.Deadline(); !ok || deadline != t.Deadline {
		fmt.Fprintln(os.Stderr, "no deadline")
	}
	switch what {
	case h.conf.Hang:
		select {}
	case h.conf.Crash:
		fmt.Fprintln(os.Stderr, "I quit")
		os.Exit(3)
	case h.conf.Fail:
		return errors.New("not today")
	}
	return nil
}

func (h *talker) Describe() plugins.Description { return plugins.Description{Name: "talker"} }
func (h *talker) Configure(_ context.Context, table plugins.Table) error {
	fmt.Fprintln(os.Stderr, "configure")
	return table.Decode(&h.conf)
}
func (h *talker) OnPromote(ctx context.Context, t plugins.Transition) error {
	return h.say(ctx, "promote", t)
}
func (h *talker) OnDemote(ctx context.Context, t plugins.Transition) error {
	return h.say(ctx, "demote", t)
}
func (h *talker) OnLeaderChange(ctx context.Context, t plugins.Transition) error {
	return h.say(ctx, "change", t)
}
func (h *talker) Stop(context.Context) error {
	fmt.Fprintln(os.Stderr, "stop")
	if h.conf.Hang == "stop" {
		select {}
	}
	return nil
}

type gatekeeper struct{ talker }

func (h *gatekeeper) PrePromote(ctx context.Context, t plugins.Transition) error {
	if h.conf.Veto != "" {
		return errors.New(h.conf.Veto)
	}
	return h.say(ctx, "pre", t)
}

var (
	playTalker     = puppet("talker", func() { plugins.Serve(&talker{}) })
	playGatekeeper = puppet("gatekeeper", func() { plugins.Serve(&gatekeeper{}) })
)

func TestHooksArriveInOrder(t *testing.T) {
	s := raise(t, play(t, playGatekeeper))
	if !s.pre.HasPrePromote() {
		t.Fatal("the gate is missing")
	}
	first, second := leading(1), leading(2)
	ctx := within(t, limit)
	for _, err := range []error{
		s.pre.PrePromote(ctx, first), s.hooks.OnPromote(ctx, first), s.hooks.OnLeaderChange(ctx, first), s.hooks.OnDemote(ctx, first),
		s.pre.PrePromote(ctx, second), s.hooks.OnPromote(ctx, second),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if st := s.hooks.Status(); st.State != "leading" || st.Token != second.Token || st.PID == 0 || st.LastError != "" {
		t.Errorf("status %+v", st)
	}
	pid := s.hooks.Status().PID
	if err := s.hooks.OnDemote(ctx, second); err != nil {
		t.Fatal(err)
	}
	if st := s.hooks.Status(); st.State != "running" || st.Token != second.Token {
		t.Errorf("after OnDemote %+v", st)
	}
	s.end()
	if !gone(pid) {
		t.Errorf("pid %d lives after Stop", pid)
	}
	want := []string{"configure", "pre 1.1 first", "promote 1.1 first", "change 1.1 first", "demote 1.1 first",
		"pre 1.2 first", "promote 1.2 first", "demote 1.2 first", "stop"}
	for i := range want {
		want[i] = "gatekeeper: " + want[i]
	}
	if have := s.output(); strings.Join(have, "\n") != strings.Join(want, "\n") {
		t.Errorf("have:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

func TestVetoIsTheHooksOwnError(t *testing.T) {
	c := play(t, playGatekeeper)
	c.Table = map[string]any{"veto": "the disk is not mounted"}
	s := raise(t, c)
	s.pre.HasPrePromote()
	err := s.pre.PrePromote(within(t, limit), leading(1))
	var own *HookError
	if !errors.As(err, &own) || own.Msg != "the disk is not mounted" {
		t.Fatalf("have %v", err)
	}
	s.until("running") // a veto costs nothing
}

func TestFailedPromoteKeepsTheProcess(t *testing.T) {
	c := play(t, playTalker)
	c.Table = map[string]any{"fail": "promote"}
	s := raise(t, c)
	if s.pre.HasPrePromote() {
		t.Error("a gate without PrePromote")
	}
	pid := s.until("running").PID
	err := s.hooks.OnPromote(within(t, limit), leading(1))
	if !errors.As(err, new(*HookError)) || !strings.Contains(err.Error(), "not today") {
		t.Fatalf("have %v", err)
	}
	if st := s.hooks.Status(); st.State != "running" || st.PID != pid || !strings.Contains(st.LastError, "not today") {
		t.Errorf("status %+v", st)
	}
}

func TestConnectionMayBeEncrypted(t *testing.T) {
	c := play(t, playTalker)
	c.AutoMTLS = true
	s := raiseUp(t, c)
	if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	s.printed("promote 1.1")
}
