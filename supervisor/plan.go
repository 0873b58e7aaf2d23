package supervisor

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// Cost is what a difference between two configs costs when it is applied. The
// strings are append-only.
type Cost string

const (
	CostNothing Cost = "nothing" // it holds from now on
	CostScale   Cost = "scale"   // workers are added, or stopped
	CostPlugins Cost = "plugins" // the role's plugins are restarted, its workers go on
	CostRoll    Cost = "roll"    // workers are restarted one by one, the leader last, after a switchover
	CostRole    Cost = "role"    // all workers are stopped in order and started again: nobody leads meanwhile
	CostStart   Cost = "start"   // the role is new
	CostStop    Cost = "stop"    // the role is stopped
	CostDaemon  Cost = "daemon"  // only a restart of standbyd applies it; its workers go on
)

// costs says which setting costs what, by the field of RoleConfig. A field that
// is not here does not pass the test.
var costs = map[string]struct {
	key  string
	cost Cost
}{
	"Command": {"command", CostRoll}, "Dir": {"dir", CostRoll}, "Env": {"env", CostRoll}, "PassEnv": {"pass_env", CostRoll},
	"WorkerOptions": {"worker", CostRoll}, "Listen": {"listen", CostRoll},
	"Confine": {"limits", CostRoll},
	"User":    {"user", CostRole}, "Group": {"group", CostRole},
	"Workers": {"workers", CostScale},

	// In the header of the segment, which members read once.
	"Tick": {"tick", CostRole}, "Grace": {"grace", CostRole}, "Preempt": {"preempt", CostRole}, "Proof": {"proof", CostRole},
	"Fence": {"fence", CostRole}, "Payload": {"payload", CostRole}, "DrainTimeout": {"drain_timeout", CostRole},
	"FenceTimeout": {"fence_timeout", CostRole}, "ProgressTimeout": {"progress_timeout", CostRole},
	"Scheduling": {"scheduling", CostRole},

	"Restart": {"restart", CostNothing}, "RestartDelay": {"restart_delay", CostNothing}, "RestartMaxDelay": {"restart_max_delay", CostNothing},
	"Burst": {"burst", CostNothing}, "BurstPer": {"burst_per", CostNothing}, "CoolDown": {"cool_down", CostNothing},
	"StartTimeout": {"start_timeout", CostNothing}, "StopTimeout": {"stop_timeout", CostNothing}, "StopSignal": {"stop_signal", CostNothing},
	"Failovers": {"failovers", CostNothing}, "Per": {"per", CostNothing}, "Probation": {"probation", CostNothing},
	"RestartOn": {"restart_on", CostNothing}, "NoRestartOn": {"no_restart_on", CostNothing}, "HookFailure": {"on_hook_failure", CostNothing},
	"Ready": {"ready", CostRoll}, "Health": {"health", CostRoll}, "Watchdog": {"watchdog", CostRoll},

	"Hooks": {"plugin", CostPlugins}, "HookTimeout": {"hook_timeout", CostPlugins},
	"LogMaxBytes": {"log_max_size", CostNothing}, "LogMaxAge": {"log_max_age", CostNothing},
	"LogKeep": {"log_keep", CostNothing}, "LogCompress": {"log_compress", CostNothing},
}

// CostOf is what a difference in a setting of a role costs, by its key in the
// config file. The limits of a worker are settings, too.
func CostOf(key string) Cost {
	for _, c := range costs {
		if c.key == key {
			return c.cost
		}
	}
	return costs["Confine"].cost
}

// Change is one difference between the config at work and another one.
type Change struct {
	Role string `json:"role,omitempty"` // empty: a setting of the supervisor itself
	Key  string `json:"key,omitempty"`  // empty: the role as a whole
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
	Cost Cost   `json:"cost"`
	// Scaled: the old value is none of a config, but what Scale was told.
	Scaled bool `json:"scaled,omitempty"`
}

// RolePlan is what happens to one role.
type RolePlan struct {
	Role string `json:"role"`
	Cost Cost   `json:"cost"` // of the dearest change
	// Restarted are the workers that run now and are restarted or stopped, in
	// the order of their names; the leader's turn is the last one.
	Restarted []string `json:"restarted"`
}

// Plan says what Reload would do with a config, and why.
type Plan struct {
	Changes []Change   `json:"changes"`
	Roles   []RolePlan `json:"roles"` // those to which something happens
}

// differences compares two configs of one role.
func differences(old, new *RoleConfig) []Change {
	var list []Change
	before, after := reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem()
	for i := range before.NumField() {
		field := before.Type().Field(i).Name
		if field == "Name" {
			continue
		}
		c := costs[field]
		if field == "Hooks" {
			if !sameHooks(old.Hooks, new.Hooks) {
				list = append(list, Change{Role: old.Name, Key: c.key, Old: hookNames(old.Hooks), New: hookNames(new.Hooks), Cost: c.cost})
			}
			continue
		}
		a, b := before.Field(i).Interface(), after.Field(i).Interface()
		if reflect.DeepEqual(a, b) || isEmpty(before.Field(i)) && isEmpty(after.Field(i)) {
			continue
		}
		if field == "Confine" {
			list = append(list, limitChanges(old.Name, &old.Confine, &new.Confine)...)
			continue
		}
		o, n := shownSetting(a), shownSetting(b)
		if field == "Env" {
			o, n = shownEnv(old.Env, new.Env)
		}
		list = append(list, Change{Role: old.Name, Key: c.key, Old: o, New: n, Cost: c.cost})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Key < list[j].Key })
	return list
}

// limitKeys are the keys of Confinement's fields, where lower case is not enough.
var limitKeys = map[string]string{"OOMScoreAdj": "oom_score_adj", "NoNewPrivs": "no_new_privs", "MemoryMax": "memory_max", "CPUMax": "cpu_max", "PIDsMax": "pids_max"}

func limitChanges(role string, old, new *Confinement) (list []Change) {
	before, after := reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem()
	shown := func(v reflect.Value) string {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return ""
			}
			v = v.Elem()
		}
		return fmt.Sprint(v.Interface())
	}
	for i := range before.NumField() {
		if reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			continue
		}
		name := before.Type().Field(i).Name
		key, ok := limitKeys[name]
		if !ok {
			key = strings.ToLower(name)
		}
		list = append(list, Change{Role: role, Key: key, Old: shown(before.Field(i)), New: shown(after.Field(i)), Cost: CostRoll})
	}
	return list
}

// isEmpty: a nil and an empty list or map mean the same.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return false
}

func shownSetting(v any) string {
	switch v := v.(type) {
	case []string:
		return strings.Join(v, " ")
	case []ListenConfig:
		var all []string
		for _, l := range v {
			all = append(all, l.Name+" = "+l.Address)
		}
		return strings.Join(all, ", ")
	case map[int]WorkerOptions:
		var all []string
		for _, i := range sortedKeys(v) {
			text := fmt.Sprintf("%d: priority %d", i, v[i].Priority)
			if v[i].NoFailover {
				text += ", nofailover"
			}
			all = append(all, text)
		}
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%v", v)
}

// shownEnv names the variables that differ and hides their values.
func shownEnv(old, new map[string]string) (before, after string) {
	var o, n []string
	for _, k := range sortedKeys(old) {
		if v, ok := new[k]; !ok || v != old[k] {
			o = append(o, k)
		}
	}
	for _, k := range sortedKeys(new) {
		if v, ok := old[k]; !ok || v != new[k] {
			n = append(n, k)
		}
	}
	return strings.Join(o, " "), strings.Join(n, " ")
}

func sortedKeys[K interface{ ~int | ~string }, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func sameHooks(a, b []NamedHooks) bool {
	return slices.EqualFunc(a, b, func(x, y NamedHooks) bool { return x.Name == y.Name && x.Version == y.Version })
}

func hookNames(hooks []NamedHooks) string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = h.Name
	}
	return strings.Join(names, ", ")
}

// costOrder has the dearest cost last.
var costOrder = []Cost{CostNothing, CostScale, CostPlugins, CostRoll, CostRole}

func dearest(changes []Change) Cost {
	most := 0
	for _, c := range changes {
		most = max(most, slices.Index(costOrder, c.Cost))
	}
	return costOrder[most]
}

// planRole is what the changes do to a role that is at work.
func planRole(changes []Change, next *RoleConfig, status *RoleStatus) (RolePlan, bool) {
	p := RolePlan{Role: next.Name, Cost: CostNothing, Restarted: []string{}}
	if len(changes) > 0 {
		p.Cost = dearest(changes)
	}
	outdated, launched := false, next.launchPrint()
	for i, w := range status.Workers {
		if w.PID == 0 {
			continue
		}
		old := printOf(status.versions[i]) != launched
		outdated = outdated || old
		if old || i >= next.Workers || p.Cost == CostRole {
			p.Restarted = append(p.Restarted, w.Name)
		}
	}
	if outdated && slices.Index(costOrder, p.Cost) < slices.Index(costOrder, CostRoll) {
		p.Cost = CostRoll
	}
	return p, len(changes) > 0 || outdated
}
