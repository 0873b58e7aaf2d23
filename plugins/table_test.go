package plugins

import (
	"testing"
	"time"

	"github.com/standbyd/standbyd/plugins/internal/wire"
)

type sample struct {
	Dir    string
	Every  time.Duration
	Keep   int
	Ratio  float64
	DryRun bool `toml:"dry_run"`
	Names  []string
	Limits map[string]int64
	Inner  struct{ Name string }
	Any    any
	hidden int
	Skip   string `toml:"-"`
}

// overTheWire is what a table looks like in the plugin.
func overTheWire(t *testing.T, table map[string]any) Table {
	t.Helper()
	b, err := wire.EncodeTable(table)
	if err != nil {
		t.Fatal(err)
	}
	out, err := wire.DecodeTable(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTableDecodes(t *testing.T) {
	got := sample{Keep: 7, hidden: 1}
	err := overTheWire(t, map[string]any{
		"dir": "/d", "every": "1m30s", "ratio": 2.0, "dry_run": true,
		"names": []any{"a", "b"}, "limits": map[string]any{"x": int64(1)<<62 + 1},
		"inner": map[string]any{"name": "n"}, "any": []any{int64(1), 1.5},
	}).Decode(&got)
	if err != nil {
		t.Fatal(err)
	}
	if got.Dir != "/d" || got.Every != 90*time.Second || got.Keep != 7 || got.Ratio != 2 || !got.DryRun ||
		len(got.Names) != 2 || got.Limits["x"] != 1<<62+1 || got.Inner.Name != "n" {
		t.Errorf("have %+v", got)
	}
	if list, ok := got.Any.([]any); !ok || list[0] != int64(1) || list[1] != 1.5 {
		t.Errorf("any: %#v", got.Any)
	}
}

func TestTableErrorsNameTheKey(t *testing.T) {
	for _, c := range []struct {
		table map[string]any
		want  string
	}{
		{map[string]any{"kep": int64(1)}, `config key "kep" is unknown; did you mean "keep"?`},
		{map[string]any{"zzzzzz": int64(1)}, `config key "zzzzzz" is unknown; there are: any, dir, dry_run, every, inner, keep, limits, names, ratio`},
		{map[string]any{"inner": map[string]any{"nam": "x"}}, `config key "inner.nam" is unknown; did you mean "name"?`},
		{map[string]any{"every": int64(30)}, `config key "every": want a duration in quotes, like "30s", have the number 30`},
		{map[string]any{"every": "30"}, `config key "every": "30" is no duration; write a number with a unit, like "30s", "5m", "12h" or "7d"`},
		{map[string]any{"keep": "5"}, `config key "keep": want a whole number, have the string "5"`},
		{map[string]any{"keep": 5.5}, `config key "keep": want a whole number, have the number 5.5`},
		{map[string]any{"dry_run": "yes"}, `config key "dry_run": want true or false, have the string "yes"`},
		{map[string]any{"dir": int64(1)}, `config key "dir": want a string, have the number 1`},
		{map[string]any{"names": "a"}, `config key "names": want a list, have the string "a"`},
		{map[string]any{"names": []any{"a", int64(1)}}, `config key "names[1]": want a string, have the number 1`},
		{map[string]any{"inner": true}, `config key "inner": want a table, have true`},
		{map[string]any{"skip": "x"}, `config key "skip" is unknown; there are: any, dir, dry_run, every, inner, keep, limits, names, ratio`},
	} {
		err := overTheWire(t, c.table).Decode(&sample{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%v:\nhave %v\nwant %s", c.table, err, c.want)
		}
	}
	var notStruct int
	if err := (Table{}).Decode(&notStruct); err == nil {
		t.Error("decoded into an int")
	}
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * day, "0.5d": day / 2, "1d12h": 36 * time.Hour, "0": 0, "-1d": -day,
	} {
		if d, err := ParseDuration(s); err != nil || d != want {
			t.Errorf("%q: %v, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "30", "d", "1d-2h", "1d2", "1dd", "1 d", "9999999d", "x", "-1d2h"} {
		if d, err := ParseDuration(s); err == nil {
			t.Errorf("%q is %v", s, d)
		}
	}
}
