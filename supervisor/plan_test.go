package supervisor

import (
	"reflect"
	"testing"
	"time"
)

// TestEveryFieldHasACost: a new setting must say what a reload makes of it.
func TestEveryFieldHasACost(t *testing.T) {
	fields := reflect.TypeFor[RoleConfig]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if _, ok := costs[name]; !ok && name != "Name" {
			t.Errorf("plan.go has no cost of RoleConfig.%s", name)
		}
	}
	if len(costs) != fields.NumField()-1 {
		t.Errorf("plan.go has %d costs for %d fields", len(costs), fields.NumField()-1)
	}
}

func TestDifferences(t *testing.T) {
	base := func() RoleConfig {
		c := DefaultRole()
		c.Name, c.Command, c.Env = "kv", []string{"/bin/kv"}, map[string]string{"KEY": "secret", "SAME": "1"}
		c.Hooks = []NamedHooks{{Name: "a", Version: "1"}}
		return c
	}
	nice := 5
	for name, c := range map[string]struct {
		edit func(*RoleConfig)
		want []Change
	}{
		"nothing":          {func(c *RoleConfig) {}, nil},
		"nil for empty":    {func(c *RoleConfig) { c.WorkerOptions, c.Listen = map[int]WorkerOptions{}, []ListenConfig{} }, nil},
		"a timer":          {func(c *RoleConfig) { c.StopTimeout = time.Minute }, []Change{{"kv", "stop_timeout", "10s", "1m0s", CostNothing, false}}},
		"arguments":        {func(c *RoleConfig) { c.Command = []string{"/bin/kv", "-v"} }, []Change{{"kv", "command", "/bin/kv", "/bin/kv -v", CostRoll, false}}},
		"hidden values":    {func(c *RoleConfig) { c.Env = map[string]string{"KEY": "other", "SAME": "1", "NEW": "x"} }, []Change{{"kv", "env", "KEY", "KEY NEW", CostRoll, false}}},
		"more workers":     {func(c *RoleConfig) { c.Workers = 5 }, []Change{{"kv", "workers", "3", "5", CostScale, false}}},
		"the segment":      {func(c *RoleConfig) { c.Grace = 20 }, []Change{{"kv", "grace", "10", "20", CostRole, false}}},
		"another plugin":   {func(c *RoleConfig) { c.Hooks = []NamedHooks{{Name: "b", Version: "1"}} }, []Change{{"kv", "plugin", "a", "b", CostPlugins, false}}},
		"a plugin's table": {func(c *RoleConfig) { c.Hooks = []NamedHooks{{Name: "a", Version: "2"}} }, []Change{{"kv", "plugin", "a", "a", CostPlugins, false}}},
		"a limit":          {func(c *RoleConfig) { c.Confine.Nice = &nice }, []Change{{"kv", "nice", "", "5", CostRoll, false}}},
		"two": {func(c *RoleConfig) { c.Failovers, c.Listen = 9, []ListenConfig{{Name: "http", Address: ":80"}} },
			[]Change{{"kv", "failovers", "5", "9", CostNothing, false}, {"kv", "listen", "", "http = :80", CostRoll, false}}},
	} {
		before, after := base(), base()
		c.edit(&after)
		if got := differences(&before, &after); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		same := len(c.want) == 0 || dearest(c.want) != CostRoll
		if (before.launchPrint() == after.launchPrint()) != same {
			t.Errorf("%s: the workers count as started with the same settings: %v", name, !same)
		}
	}
}
