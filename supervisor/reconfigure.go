package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/standbyd/standbyd/internal/listen"
	"github.com/standbyd/standbyd/internal/logreader"
)

// prepare makes the loop ready for a new config before the step hears of it:
// sockets and places that are new. If one cannot be had, nothing has changed.
func (r *roleLoop) prepare(in inReload) error {
	held, err := r.listenersFor(in.config.Listen)
	if err != nil {
		return err
	}
	places := len(r.posts)
	for i := places; i < in.config.Workers; i++ {
		r.posts = append(r.posts, &post{deaths: deathLog{r.paths.deaths(workerName(r.config.Name, i)), -1}})
	}
	if places < len(r.posts) {
		uid, gid := in.user.owner()
		err = r.openOutputs(uid, gid)
	}
	if err != nil {
		closeNew(held, r.listeners)
		r.posts = r.posts[:places]
		return err
	}
	closeNew(r.listeners, held)
	r.listeners = held
	for i, h := range held {
		if h != nil {
			h.Name = in.config.Listen[i].Name
		}
	}
	r.user, r.nextHooks = in.user, in.config.Hooks
	r.config.become(in.config)
	for _, p := range r.posts {
		if log, ok := p.output.(*logreader.Log); ok {
			log.SetOptions(r.logOptions())
		}
	}
	return nil
}

// refuse answers a reload whose sockets or places cannot be had.
func (r *roleLoop) refuse(in inReload, err error) {
	rolled := Rolled{}
	if in.failure != nil {
		rolled = Rolled{Role: r.config.Name, Started: []string{}, Stopped: []string{}, Left: []string{}}
		err = fmt.Errorf("%w; it cannot go back to the settings before: %w", in.failure, err)
		r.emit(Event{Type: EventWarning, Text: err.Error()})
	}
	if in.reply != nil {
		in.reply <- answer[Rolled]{rolled, err}
	}
}

// become takes every setting over but the name, which never changes and which
// other goroutines read, and the hooks, which change when the old ones have
// stopped.
func (c *RoleConfig) become(next RoleConfig) {
	to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(next)
	for i := range to.NumField() {
		if name := to.Type().Field(i).Name; name != "Name" && name != "Hooks" {
			to.Field(i).Set(from.Field(i))
		}
	}
}

// listenersFor keeps what is held and wanted still, and binds what is new.
func (r *roleLoop) listenersFor(wanted []ListenConfig) ([]*listen.Held, error) {
	held := make([]*listen.Held, len(wanted))
	used := make([]bool, len(r.listeners))
	keep := func(same func(old, c *ListenConfig) bool) {
		for i := range wanted {
			for k := range r.config.Listen {
				if old := &r.config.Listen[k]; held[i] == nil && !used[k] && old.network() == wanted[i].network() && old.Address == wanted[i].Address && same(old, &wanted[i]) {
					held[i], used[k] = r.listeners[k], true
				}
			}
		}
	}
	keep(func(old, c *ListenConfig) bool { return old.Name == c.Name })
	keep(func(_, _ *ListenConfig) bool { return true }) // under another name now
	for i, c := range wanted {
		if held[i] != nil {
			continue
		}
		h, err := r.bindSocket(i, c)
		if err != nil {
			closeNew(held, r.listeners)
			return nil, err
		}
		held[i] = h
	}
	return held, nil
}

// closeNew closes what is in list and not in kept.
func closeNew(list, kept []*listen.Held) {
	for _, h := range list {
		if h == nil {
			continue
		}
		found := false
		for _, k := range kept {
			found = found || k == h
		}
		if !found {
			h.Close(true)
		}
	}
}

// hireAnew starts the hooks of the new config in the place of the old ones,
// which have stopped.
func (r *roleLoop) hireAnew() {
	r.config.Hooks = r.nextHooks
	uid, gid := r.user.owner()
	if err := errors.Join(r.furnishHooks(), r.openOutputs(uid, gid)); err != nil {
		r.emit(Event{Type: EventWarning, Text: err.Error()})
	}
	r.hire()
	if len(r.config.Hooks) == 0 {
		r.next(inHooked{})
		return
	}
	go r.queue.run()
}

// printOf is the print in a version.
func printOf(version string) string {
	print, _, _ := strings.Cut(version, "#")
	return print
}

// launchPrint tells settings apart that a running process cannot take over:
// what it was started with. A version is a print, and "#N" for the Nth of a
// row of restarts that were asked for with the same settings.
func (c *RoleConfig) launchPrint() string {
	h := sha256.New()
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; costs[name].cost == CostRoll && !isEmpty(v.Field(i)) {
			// JSON follows pointers, and has maps in the order of their keys.
			b, err := json.Marshal(v.Field(i).Interface())
			fmt.Fprintf(h, "%s=%s %v\n", name, b, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
