package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// The names in the folder of the snapshots. Everything else there is not ours
// and is never touched.
const (
	prefix   = "snapshot-"
	building = ".building-" // before the name of a snapshot: not whole yet
	leaving  = ".leaving-"  // before the name of a snapshot: being removed

	timeLayout = "20060102T150405.000Z" // UTC, to the millisecond
)

// name identifies a snapshot: when it was begun, and by which leadership.
type name struct {
	at    time.Time
	token role.Token
}

// String is the folder's name: "snapshot-20260102T150405.000Z-3.17".
func (n name) String() string {
	return prefix + n.at.UTC().Format(timeLayout) + "-" + n.token.String()
}

func parseName(s string) (name, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	when, what, ok2 := strings.Cut(rest, "-")
	if !ok || !ok2 {
		return name{}, false
	}
	at, err := time.Parse(timeLayout, when)
	if err != nil {
		return name{}, false
	}
	token, err := role.ParseToken(what)
	if err != nil {
		return name{}, false
	}
	n := name{at: at, token: token}
	return n, n.String() == s
}

// list returns the whole snapshots, oldest first: by token and then by time,
// because clocks are set and tokens only rise. leftovers are what a crash
// left.
func list(dir *os.Root) (whole []name, leftovers []string, err error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, nil, fmt.Errorf("list snapshots: %w", err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, e := range entries {
		if n, ok := parseName(e.Name()); ok && e.IsDir() {
			whole = append(whole, n)
			continue
		}
		for _, mark := range []string{building, leaving} {
			if rest, ok := strings.CutPrefix(e.Name(), mark); ok && strings.HasPrefix(rest, prefix) {
				leftovers = append(leftovers, e.Name())
			}
		}
	}
	slices.SortFunc(whole, func(a, b name) int {
		return cmp.Or(cmp.Compare(a.token, b.token), a.at.Compare(b.at))
	})
	slices.Sort(leftovers)
	return whole, leftovers, nil
}
