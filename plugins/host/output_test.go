package host

import (
	"strings"
	"testing"
)

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a\nb", []string{"a", "b"}},
		{"a\r\n\nb\n", []string{"a", "", "b"}},
		{long + "\n", []string{long}},
		{long + "y\nz\n", []string{long, "y", "z"}},
		{long + long + "\n\nz", []string{long, long, "", "z"}},
	} {
		var have []string
		readLines(strings.NewReader(c.in), func(l string) { have = append(have, l) })
		if strings.Join(have, "|") != strings.Join(c.want, "|") {
			t.Errorf("%.20q: have %d lines, want %d", c.in, len(have), len(c.want))
		}
	}
}

func TestLastWordsKeepTheReason(t *testing.T) {
	var l lastWords
	for _, line := range []string{"a", "b", "", "panic: boom", "", "goroutine 1 [running]:", "main.main()", "\t/x.go:1", "goroutine 2"} {
		l.add(line)
	}
	if have := l.String(); have != "panic: boom | goroutine 1 [running]: | main.main() | \t/x.go:1" {
		t.Errorf("have %q", have)
	}
}

func TestLineWriter(t *testing.T) {
	var have []string
	w := lineWriter{each: func(l string) { have = append(have, l) }}
	for _, s := range []string{"a", "b\nc\r\n", strings.Repeat("x", 2*maxLine), "\n"} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(have) < 4 || have[0] != "ab" || have[1] != "c" || len(strings.Join(have[2:], "")) != 2*maxLine {
		t.Errorf("have %d lines", len(have))
	}
}

// FuzzPlainLine: whatever a plugin writes is one line of text, and no crash.
func FuzzPlainLine(f *testing.F) {
	for _, s := range []string{`{"@message": 5}`, `{"@message":"a\nb","@level":"info","k":{"x":[1]}}`, `{"@message":"m","@level":5,"@module":{}}`, "{", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.ReplaceAll(line, "\n", "")
		if out := plainLine(line); strings.Contains(out, "\n") {
			t.Errorf("%q became %q", line, out)
		}
	})
}

func FuzzCheckHandshake(f *testing.F) {
	f.Add("1|1|unix|/x|grpc|")
	f.Add("hello")
	f.Fuzz(func(t *testing.T, line string) {
		if err := checkHandshake(line); err != nil && len(err.Error()) > 1000 && len(line) < 200 {
			t.Errorf("%d bytes of error for %d of line", len(err.Error()), len(line))
		}
	})
}
