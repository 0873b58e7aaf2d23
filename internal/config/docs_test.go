package config

import (
	"os"
	"strings"
	"testing"
)

const (
	tableBegin = "<!-- keys: begin -->\n"
	tableEnd   = "<!-- keys: end -->\n"
)

// TestDocumentation holds docs/config.md to the code: one table, every key.
func TestDocumentation(t *testing.T) {
	const file = "../../docs/config.md"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), tableBegin)
	got, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no markers %q and %q", file, tableBegin, tableEnd)
	}
	want := DocTable()
	if *update {
		if err := os.WriteFile(file, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("the table in %s differs from the code; run go test ./internal/config -update\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}
