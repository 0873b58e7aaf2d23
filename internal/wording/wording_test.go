package wording

import "testing"

func TestFew(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for n, want := range map[int]string{0: "", 1: "a", 6: "a, b, c, d, e, f", 7: "a, b, c, d, e, f and 1 more", 8: "a, b, c, d, e, f and 2 more"} {
		if got := Few(names[:n]); got != want {
			t.Errorf("Few of %d names: %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 roles", 1: "1 role", 2: "2 roles"} {
		if got := Count(n, "role"); got != want {
			t.Errorf("Count(%d): %q, want %q", n, got, want)
		}
	}
}
