package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/config"
	"github.com/standbyd/standbyd/internal/wording"
	"github.com/standbyd/standbyd/supervisor"
)

// thingsToTry is how many command lines the greeting shows.
const thingsToTry = 3

// greet tells who started the daemon where its roles listen and what to try,
// with command lines that can be copied.
func (a *app) greet(s supervisor.Snapshot, c *config.Config, file string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "standbyd %s (pid %d) runs %s\n\n", version, s.Supervisor.PID, file)
	var hints []string
	for i, r := range s.Roles {
		fmt.Fprintf(&b, "  role %s: %s", r.Name, wording.Count(len(r.Workers), "worker"))
		for _, l := range r.Listen {
			fmt.Fprintf(&b, ", %s on %s %s", l.Name, l.Network, l.Address)
		}
		if len(r.Plugins) > 0 {
			names := make([]string, len(r.Plugins))
			for j, p := range r.Plugins {
				names[j] = p.Name
			}
			fmt.Fprintf(&b, ", %s", "plugins "+strings.Join(names, " and "))
		}
		b.WriteByte('\n')
		if i < len(c.Roles) {
			hints = append(hints, filled(c.Roles[i].Hints, r)...)
		}
	}
	if len(s.Roles) > 0 {
		name := s.Roles[0].Name
		hints = append(hints,
			a.self()+" status",
			fmt.Sprintf("kill -9 $(%s pid %s/leader); %s history", a.self(), name, a.self()),
			fmt.Sprintf("%s logs %s", a.self(), name))
	}
	b.WriteString("\nThings to try, in another terminal:\n\n")
	for _, h := range hints[:min(len(hints), max(thingsToTry, len(hints)-1))] {
		fmt.Fprintf(&b, "  %s\n", h)
	}
	b.WriteString("\nCtrl-C stops everything in order.\n\n")
	a.stdout.Write(b.Bytes())
}

// listening is a snapshot in which ports that the system chose are known, if
// that comes soon.
func listening(sup *supervisor.Supervisor) supervisor.Snapshot {
	limit := time.Now().Add(greetWithin)
	for {
		s := sup.Snapshot()
		if !slices.ContainsFunc(s.Roles, unbound) || time.Now().After(limit) {
			return s
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func unbound(r supervisor.RoleStatus) bool {
	return slices.ContainsFunc(r.Listen, func(l supervisor.ListenStatus) bool {
		return l.Network != "unix" && strings.HasSuffix(l.Address, ":0")
	})
}

// filled replaces {NAME} by the address of the listener NAME.
func filled(hints []string, r supervisor.RoleStatus) []string {
	var pairs []string
	for _, l := range r.Listen {
		pairs = append(pairs, "{"+l.Name+"}", l.Address)
	}
	fill := strings.NewReplacer(pairs...)
	out := make([]string, len(hints))
	for i, h := range hints {
		out[i] = fill.Replace(h)
	}
	return out
}
