package host

import (
	"slices"
	"strings"
)

var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GOTRACEBACK", "GOCOVERDIR",
	"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
}

// environment puts a plugin's environment together: the allowed part of ours,
// what the configuration adds, and last what the handshake needs.
func environment(ours, added, handshake []string) []string {
	var env []string
	for _, e := range ours {
		key, _, _ := strings.Cut(e, "=")
		if slices.Contains(inherited, key) || strings.HasPrefix(key, "LC_") {
			env = append(env, e)
		}
	}
	for _, e := range added {
		key, _, ok := strings.Cut(e, "=")
		if ok && !foreign(key) {
			env = append(env, e)
		}
	}
	return append(env, handshake...)
}

// foreign reports variables that speak to one process about its own launch.
func foreign(key string) bool {
	return key == markName || key == "NOTIFY_SOCKET" || key == "WATCHDOG_PID" || key == "WATCHDOG_USEC" ||
		strings.HasPrefix(key, "PLUGIN_") || strings.HasPrefix(key, "LISTEN_")
}
