package config

import (
	"errors"
	"strings"
	"testing"
)

// TestMistakesAreToldAsTheyStandInTheFile: with the words of the file, and the
// cause rather than what the decoder made of it.
func TestMistakesAreToldAsTheyStandInTheFile(t *testing.T) {
	const role = "[role.kv]\ncommand = [\"/bin/true\"]\n"
	for text, want := range map[string][2]string{
		role + "no_restart_on = [\"SIGFOO\"]\n":     {"role.kv.no_restart_on[0]", `"SIGFOO" is neither an exit status nor a signal`},
		role + "log_max_size = \"1000000\"\n":       {"role.kv.log_max_size", `"1000000" has no unit; write one`},
		"[role.kv]\n[a":                             {"a", "but got the end of the file instead"},
		role + "workers":                            {"role.kv.workers", "expected key separator '='"},
		role + "[role.kz":                           {"role.kz", "but got the end of the file instead"},
		"\xff\xfe[\x00r\x00":                        {"", "the byte 0xFF is no UTF-8"},
		role + "dir = \"/caf\xe9\"\n":               {"", "the byte 0xE9 is no UTF-8"},
		role + "# café �\nlog_max_size = \"1 B\"\n": {"role.kv.log_max_size", "out of range"},
	} {
		_, err := Load(write(t, text))
		var problems Problems
		if !errors.As(err, &problems) || len(problems) != 1 {
			t.Errorf("%q: %v", text, err)
			continue
		}
		p := problems[0]
		if want[0] != "" && p.Key != want[0] || !strings.Contains(p.Msg, want[1]) {
			t.Errorf("%q: line %d, %s: %s", text, p.Line, p.Key, p.Msg)
		}
	}
	for _, text := range []string{"log_max_size = 1000000", "log_max_size = \"1000000B\"", "memory_max = \"0\"", "restart_on = [\"sighup\"]"} {
		if _, err := Load(write(t, role+text+"\n")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
