package page

import "testing"

func TestPartsLeaveEachOtherAlone(t *testing.T) {
	one := replace("", "one", "first\n")
	want := "# Benchmarks\n\n<!-- one: begin -->\nfirst\n<!-- one: end -->\n"
	if one != want {
		t.Fatalf("a new page:\n%s", one)
	}
	both := replace(one, "two", "second")
	if both != want+"\n<!-- two: begin -->\nsecond\n<!-- two: end -->\n" {
		t.Fatalf("a second part:\n%s", both)
	}
	again := replace(replace(both, "one", "third"), "two", "fourth")
	if again != "# Benchmarks\n\n<!-- one: begin -->\nthird\n<!-- one: end -->\n\n<!-- two: begin -->\nfourth\n<!-- two: end -->\n" {
		t.Fatalf("both replaced:\n%s", again)
	}
	if got := replace("# Benchmarks\n\nno parts\n", "one", "first"); got != want {
		t.Fatalf("a page without parts:\n%s", got)
	}
}
