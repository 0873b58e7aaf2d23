package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/internal/wording"
)

// Reloaded says what a reload has done.
type Reloaded struct {
	Plan  Plan           `json:"plan"`
	Roles []RoleReloaded `json:"roles"` // as Plan.Roles
}

// RoleReloaded is the outcome for one role.
type RoleReloaded struct {
	Role string `json:"role"`
	Cost Cost   `json:"cost"`
	Rolled
	Error string `json:"error,omitempty"`
}

// Plan says what Reload would do with this config. Nothing happens. The error
// is a *ConfigError.
func (s *Supervisor) Plan(c Config) (Plan, error) {
	next, err := s.resolveConfig(c)
	if err != nil {
		return Plan{}, err
	}
	return s.plan(next), nil
}

// nextRole is a role of a new config, checked.
type nextRole struct {
	RoleConfig
	user identity
}

func (s *Supervisor) resolveConfig(c Config) ([]nextRole, error) {
	if c.RuntimeDir == "" {
		c.RuntimeDir = s.config.RuntimeDir
	}
	if c.StateDir == "" {
		c.StateDir = s.config.StateDir
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var roles []nextRole
	for i := range c.Roles {
		rc := c.Roles[i].copy()
		u, err := s.admit(&rc)
		if err != nil {
			return nil, err
		}
		roles = append(roles, nextRole{rc, u})
	}
	return roles, nil
}

func (s *Supervisor) plan(next []nextRole) Plan {
	p := Plan{Changes: []Change{}, Roles: []RolePlan{}}
	old := s.current()
	for i := range old {
		if !slices.ContainsFunc(next, func(n nextRole) bool { return n.Name == old[i].Name }) {
			p.Changes = append(p.Changes, Change{Role: old[i].Name, Cost: CostStop})
			stopped := RolePlan{Role: old[i].Name, Cost: CostStop, Restarted: []string{}}
			if r := s.role(old[i].Name); r != nil {
				for _, w := range r.published.Load().Workers {
					if w.PID != 0 {
						stopped.Restarted = append(stopped.Restarted, w.Name)
					}
				}
			}
			p.Roles = append(p.Roles, stopped)
		}
	}
	for i := range next {
		n := &next[i]
		at := slices.IndexFunc(old, func(c RoleConfig) bool { return c.Name == n.Name })
		if at < 0 {
			p.Changes = append(p.Changes, Change{Role: n.Name, Cost: CostStart})
			p.Roles = append(p.Roles, RolePlan{Role: n.Name, Cost: CostStart, Restarted: []string{}})
			continue
		}
		changes := differences(&old[at], &n.RoleConfig)
		for k := range changes {
			changes[k].Scaled = changes[k].Cost == CostScale && s.isScaled(n.Name, old[at].Workers)
		}
		p.Changes = append(p.Changes, changes...)
		if r := s.role(n.Name); r != nil {
			if plan, something := planRole(changes, &n.RoleConfig, r.published.Load()); something {
				p.Roles = append(p.Roles, plan)
			}
		}
	}
	return p
}

// Reload makes this config the one at work, and changes only what differs: see
// Cost for what a difference costs. Workers are restarted one by one, the
// standbys first, then the leader after a switchover. If one does not get
// ready with the new settings, its role goes back to the config before (but for
// its plugins), and the error says why. Roles are changed side by side.
//
// It returns when all is done; each role's outcome is in the result. A config
// that cannot work changes nothing: the error is a *ConfigError. ErrBusy if
// another change of roles is under way: a Reload, Scale or RestartRolling. RuntimeDir, StateDir and the other settings of
// the supervisor itself are left as they are.
func (s *Supervisor) Reload(ctx context.Context, c Config) (Reloaded, error) {
	next, err := s.resolveConfig(c)
	if err != nil {
		return Reloaded{}, err
	}
	if err := s.reshaping.begin("reload"); err != nil {
		return Reloaded{}, err
	}
	defer s.reshaping.end()
	if !s.isRunning() {
		return Reloaded{}, ErrNotRunning
	}
	out := Reloaded{Plan: s.plan(next)}
	out.Roles = make([]RoleReloaded, len(out.Plan.Roles))
	var all sync.WaitGroup
	// The plan has what is stopped first: a new role may want its address.
	for i, p := range out.Plan.Roles {
		if i > 0 && p.Cost != CostStop && out.Plan.Roles[i-1].Cost == CostStop {
			all.Wait()
		}
		result := &out.Roles[i]
		*result = RoleReloaded{Role: p.Role, Cost: p.Cost, Rolled: Rolled{Role: p.Role, Started: []string{}, Stopped: []string{}, Left: []string{}}}
		all.Go(func() {
			if err := s.reloadRole(ctx, p, out.Plan.Changes, next, result); err != nil {
				result.Error = err.Error()
			}
		})
	}
	all.Wait()
	s.arrange(next)
	for i := range next {
		if r := s.role(next[i].Name); r != nil && !slices.ContainsFunc(out.Roles, func(o RoleReloaded) bool { return o.Role == next[i].Name }) {
			r.tell(inUnchanged{})
		}
	}
	var failed []error
	for _, r := range out.Roles {
		if r.Error != "" {
			failed = append(failed, fmt.Errorf("%s: %s", r.Role, r.Error))
		}
	}
	s.bus.publish(Event{Type: EventReloaded, Text: fmt.Sprintf("%s in %s", wording.Count(len(out.Plan.Changes), "change"), wording.Count(len(out.Plan.Roles), "role")), Error: printableOf(errors.Join(failed...))})
	if len(failed) > 0 {
		return out, fmt.Errorf("reload: %w", errors.Join(failed...))
	}
	return out, nil
}

func printableOf(err error) string {
	if err == nil {
		return ""
	}
	return printable(err.Error())
}

func (s *Supervisor) reloadRole(ctx context.Context, p RolePlan, changes []Change, next []nextRole, result *RoleReloaded) error {
	if p.Cost == CostStop {
		return s.dismiss(ctx, p.Role)
	}
	n := &next[slices.IndexFunc(next, func(n nextRole) bool { return n.Name == p.Role })]
	if p.Cost == CostStart {
		return s.establish(n)
	}
	r := s.role(p.Role)
	if r == nil {
		return ErrNotRunning
	}
	costs := func(c Cost) bool {
		return slices.ContainsFunc(changes, func(x Change) bool { return x.Role == p.Role && x.Cost == c })
	}
	rolled, err := s.change(ctx, r, inReload{config: n.RoleConfig, user: n.user, policy: &policy{RoleConfig: n.RoleConfig},
		version: n.launchPrint(), what: "reload", hooks: costs(CostPlugins), renew: costs(CostRole)})
	if rolled.Role != "" {
		result.Rolled = rolled
	}
	return err
}

// change has the role's loop take a config over, and waits for the end of it.
func (s *Supervisor) change(ctx context.Context, r *roleLoop, in inReload) (Rolled, error) {
	rolled, err := ask(ctx, s, r, func(answer reply[Rolled]) input {
		in.reply = answer
		return in
	})
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("nobody waits for its end, it goes on: %w", err)
	}
	return rolled, err
}

// RestartRolling restarts all workers of a role one by one: standbys first,
// then the leader after a switchover. It returns when all run anew, or when
// one does not get ready: then the others are left as they are. It is refused
// with ErrNoLeader where nobody leads and nobody may (paused, held, stopped).
func (s *Supervisor) RestartRolling(ctx context.Context, roleName string) (Rolled, error) {
	return s.changeOne(ctx, "restart", "restart "+roleName+" --rolling", roleName, func(c *RoleConfig) (inReload, error) {
		return inReload{rolling: true, what: "restart --rolling", version: fmt.Sprintf("%s#%d", c.launchPrint(), proc.MonoNow())}, nil
	})
}

// Scale changes how many workers a role has, until the next reload or restart
// of the supervisor, which take the number from the config. New workers are
// started one by one; those beyond the number are stopped, the leader after a
// switchover to one that stays.
func (s *Supervisor) Scale(ctx context.Context, roleName string, workers int) (Rolled, error) {
	return s.changeOne(ctx, "scale", fmt.Sprintf("scale %s %d", roleName, workers), roleName, func(c *RoleConfig) (inReload, error) {
		c.Workers = workers
		return inReload{version: c.launchPrint(), what: fmt.Sprintf("scale to %s", wording.Count(workers, "worker"))}, c.Validate()
	})
}

func (s *Supervisor) changeOne(ctx context.Context, verb, what, roleName string, edit func(*RoleConfig) (inReload, error)) (Rolled, error) {
	r := s.role(roleName)
	if r == nil {
		return Rolled{}, fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, roleName, s.roleNames())
	}
	if err := s.reshaping.begin(what); err != nil {
		return Rolled{}, err
	}
	defer s.reshaping.end()
	before := r.atWork.Load()
	c := before.copy()
	in, err := edit(&c)
	if err != nil {
		return Rolled{}, fmt.Errorf("%s %s: %w", verb, roleName, err)
	}
	u, err := s.admit(&c)
	if err != nil {
		return Rolled{}, fmt.Errorf("%s %s: %w", verb, roleName, err)
	}
	in.config, in.user, in.policy = c, u, &policy{RoleConfig: c}
	s.noteScale(roleName, before.Workers, c.Workers)
	rolled, err := s.change(ctx, r, in)
	if err != nil {
		return rolled, fmt.Errorf("%s %s: %w", verb, roleName, err)
	}
	return rolled, nil
}

// isScaled tells whether workers, the number that a role has, was set by Scale.
func (s *Supervisor) isScaled(roleName string, workers int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted, scaled := s.scaled[roleName]
	return scaled && wanted != workers
}

// noteScale remembers what the config says of a role's workers, before Scale
// gives it another number.
func (s *Supervisor) noteScale(roleName string, before, now int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, already := s.scaled[roleName]; !already && now != before {
		if s.scaled == nil {
			s.scaled = map[string]int{}
		}
		s.scaled[roleName] = before
	}
}

// current are the configs at work, in the order of status. Each role's loop
// says which that is: whoever asked for a change may not wait for its end, and
// a change may be undone.
func (s *Supervisor) current() []RoleConfig {
	var configs []RoleConfig
	for _, r := range s.loops() {
		if !r.dismissed.Load() {
			configs = append(configs, *r.atWork.Load())
		}
	}
	return configs
}

// arrange puts the roles in the order of the new configs. Where their number of
// workers is the one at work, Scale has no say any more.
func (s *Supervisor) arrange(next []nextRole) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := func(name string) int {
		return slices.IndexFunc(next, func(n nextRole) bool { return n.Name == name })
	}
	s.roles = slices.Clone(s.roles)
	slices.SortStableFunc(s.roles, func(a, b *roleLoop) int { return place(a.config.Name) - place(b.config.Name) })
	for name := range s.scaled {
		at := slices.IndexFunc(s.roles, func(r *roleLoop) bool { return r.config.Name == name })
		if n := place(name); n < 0 || at < 0 || s.roles[at].atWork.Load().Workers == next[n].Workers {
			delete(s.scaled, name)
		}
	}
}

// establish begins a role that is new.
func (s *Supervisor) establish(n *nextRole) error {
	if s.role(n.Name) != nil {
		return fmt.Errorf("%w: the role that had this name still stops; reload again when `standbyd status` no longer shows it", ErrBusy)
	}
	r := newRoleLoop(s, n.RoleConfig, n.user)
	if _, err := r.open(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running || s.ending {
		r.abandon()
		return ErrNotRunning
	}
	s.roles = append(slices.Clone(s.roles), r)
	s.all.Go(r.run)
	return nil
}

// dismiss stops a role in order and forgets it.
func (s *Supervisor) dismiss(ctx context.Context, name string) error {
	r := s.role(name)
	if r == nil {
		return nil
	}
	r.dismissed.Store(true)
	gone := make(chan struct{})
	go func() {
		r.tell(inClose{})
		<-r.done
		s.forget(r)
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("its stop goes on: %w", context.Cause(ctx))
	}
}

func (s *Supervisor) forget(r *roleLoop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles = slices.DeleteFunc(slices.Clone(s.roles), func(o *roleLoop) bool { return o == r })
}
