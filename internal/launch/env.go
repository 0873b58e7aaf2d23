//go:build unix

package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Variables that Environ decides about.
var ownVariables = []string{"LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "STANDBYD_LISTEN_FDS", "STANDBYD_SEGMENT_FD", "STANDBYD_PID"}

// firstFD is the number of the first descriptor after the standard ones.
const firstFD = 3

// Environ returns env with the variables that describe inherited descriptors:
// LISTEN_FDS and LISTEN_FDNAMES (names separated by colons), as systemd has
// them, STANDBYD_LISTEN_FDS ("http=3,admin=4") and STANDBYD_SEGMENT_FD. Without
// listeners, or without a segment, the respective ones are absent, also if env
// had them. Of a variable that env has twice, the last one is kept: programs
// differ in which one they find. LISTEN_PID and STANDBYD_PID are
// left to the stage, which knows the pid.
func Environ(env, listenNames []string, segment bool) []string {
	out := make([]string, 0, len(env)+len(ownVariables))
	place := make(map[string]int, len(env))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if i, twice := place[name]; twice {
			out[i] = kv
			continue
		}
		if !slices.Contains(ownVariables, name) {
			place[name] = len(out)
			out = append(out, kv)
		}
	}
	if len(listenNames) > 0 {
		pairs := make([]string, len(listenNames))
		for i, name := range listenNames {
			pairs[i] = fmt.Sprintf("%s=%d", name, firstFD+i)
		}
		out = append(out,
			"LISTEN_FDS="+strconv.Itoa(len(listenNames)),
			"LISTEN_FDNAMES="+strings.Join(listenNames, ":"),
			"STANDBYD_LISTEN_FDS="+strings.Join(pairs, ","))
	}
	if segment {
		out = append(out, "STANDBYD_SEGMENT_FD="+strconv.Itoa(firstFD+len(listenNames)))
	}
	return out
}
