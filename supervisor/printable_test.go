package supervisor

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/test/eventually"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"as it is: é ☃ \\ \"":   "as it is: é ☃ \\ \"",
		"two\n\tlines":          "two\n\tlines",
		"\x1b[2Jred\x00\a\r":    `\x1b[2Jred\x00\a\r`,
		"bad \xff\xc3 end":      `bad \xff\xc3 end`,
		"\u202eright to left":   `\u202eright to left`,
		"\ufffd is a character": "\ufffd is a character",
	} {
		got := printable(in)
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if again := printable(got); again != got {
			t.Errorf("%q: twice it is %q", in, again)
		}
	}
	base := errors.New("\x1b")
	if err := printableError(base); err.Error() != `\x1b` || !errors.Is(err, base) || printableError(nil) != nil {
		t.Errorf("%v", err)
	}
}

// TestForeignTextIsPrintable: what a plugin says reaches events and status
// without control bytes.
func TestForeignTextIsPrintable(t *testing.T) {
	c := newConfig(t, "good")
	h := &recorder{status: HookStatus{State: "odd\x1b[1m", LastError: "said \x00\xff"}}
	h.on = func(moment string, _ role.Transition) error {
		if moment == "promote" {
			return errors.New("\x1b[31mno\x00 such \xfe table")
		}
		return nil
	}
	quiet := &recorder{on: h.on} // its own status says nothing
	c.Roles[0].Hooks = []NamedHooks{{Name: "loud", Hooks: h}, {Name: "quiet", Hooks: quiet}}
	w := start(t, c)
	r := w.until("the failure is shown", func(r RoleStatus) bool { return r.Plugins[1].LastError != "" })
	if got := r.Plugins[1].LastError; got != `\x1b[31mno\x00 such \xfe table` {
		t.Errorf("status: %q", got)
	}
	if got := r.Plugins[0]; got.State != `odd\x1b[1m` || got.LastError != `said \x00\xff` {
		t.Errorf("status: %+v", got)
	}
	h.env.Changed()
	eventually.Holds(t, "the plugin's event has its state", func() bool {
		for _, e := range w.sup.RecentEvents() {
			if e.Type == EventPlugin && e.Plugin == "loud" && e.Text == `odd\x1b[1m` && e.Error == `said \x00\xff` {
				return true
			}
		}
		return false
	})
	for _, e := range w.sup.RecentEvents() {
		if !utf8.ValidString(e.Text+e.Error) || strings.ContainsAny(e.Text+e.Error, "\x1b\x00") {
			t.Errorf("%q %q", e.Text, e.Error)
		}
	}
}
