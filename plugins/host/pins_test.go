package host

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Older versions have faults that this package does not work around.
func TestPins(t *testing.T) {
	b, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for module, c := range map[string]struct {
		least [3]int
		why   string
	}{
		"github.com/hashicorp/go-plugin": {[3]int{1, 8, 0}, "the runner's interface; before 1.6.2 an innocent process could be killed for its pid"},
		"google.golang.org/grpc":         {[3]int{1, 81, 1}, "go-plugin's own pin is years old, and has known holes"},
		"google.golang.org/protobuf":     {[3]int{1, 36, 12}, "the generated code asks for it"},
	} {
		m := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(module) + ` v(\d+)\.(\d+)\.(\d+)(.*)$`).FindStringSubmatch(string(b))
		if m == nil || strings.Contains(m[4], "indirect") {
			t.Errorf("go.mod does not require %s by itself: %s", module, c.why)
			continue
		}
		for i := range c.least {
			have, _ := strconv.Atoi(m[i+1])
			if have != c.least[i] {
				if have < c.least[i] {
					t.Errorf("%s is v%s.%s.%s, want at least %v: %s", module, m[1], m[2], m[3], c.least, c.why)
				}
				break
			}
		}
	}
}
