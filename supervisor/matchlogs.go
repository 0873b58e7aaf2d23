package supervisor

import (
	"fmt"
	"path"
	"strings"

	"github.com/standbyd/standbyd/internal/capture"
)

// MatchLog reports whether a pattern with the wildcards of path.Match names the
// log ("kv-0", "kv.plugins"): "k*" by its role, "*/0" and "k*/plugins" by its
// role and what comes after it, "kv-*" as a whole.
func MatchLog(pattern, log string) bool {
	role, which := log, ""
	if r, ok := strings.CutSuffix(log, ".plugins"); ok {
		role, which = r, "plugins"
	} else if at := strings.LastIndexByte(log, '-'); at > 0 {
		role, which = log[:at], log[at+1:]
	}
	match := func(pattern, name string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	}
	if of, what, one := strings.Cut(pattern, "/"); one {
		return match(of, role) && (match(what, which) || match(what, log))
	}
	return match(pattern, role) || match(pattern, log)
}

// matchLogs is LogSources for a pattern.
func (s *Supervisor) matchLogs(pattern string) (sources []capture.Source, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("%w: %q is no pattern: %v", ErrNoRole, pattern, err)
	}
	for _, r := range s.loops() {
		all, err := s.LogSources(r.config.Name)
		if err != nil {
			return nil, err
		}
		for _, source := range all {
			if MatchLog(pattern, source.Name) {
				sources = append(sources, source)
			}
		}
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%w: nothing matches %q (there are: %s)", ErrNoRole, pattern, s.roleNames())
	}
	return sources, nil
}
