package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Probe says how a worker shows that it is ready, or in health. At most one of
// FD, HTTP, TCP and Exec is set; with none of them there is no probe. In HTTP,
// TCP and Exec {index} stands for the worker's number, {8080+index} for the sum
// of both, {worker} for its name and {pid} for its process.
type Probe struct {
	FD   int      // the worker writes a newline to this descriptor; only for Ready
	HTTP string   // a GET of this URL is answered with a status from 200 to 399
	TCP  string   // a connection to this host:port, or to this Unix socket, is accepted
	Exec []string // this program ends with status 0

	Interval  time.Duration // from the end of one try to the next one
	Timeout   time.Duration // of one try
	Threshold int           // Ready: successes in a row until it counts; Health: failures in a row
}

// IsSet tells whether the probe asks anything at all.
func (p Probe) IsSet() bool { return p.FD != 0 || p.HTTP != "" || p.TCP != "" || len(p.Exec) > 0 }

// validate: firstFree is the first descriptor of a worker that is not taken,
// last the highest number of a worker.
func (p Probe) validate(table string, firstFree, last int) error {
	bad := func(field, format string, args ...any) error {
		return &ConfigError{Field: table + "." + field, Msg: fmt.Sprintf(format, args...)}
	}
	var ways []string
	for _, way := range []struct {
		name string
		set  bool
	}{{"fd", p.FD != 0}, {"http", p.HTTP != ""}, {"tcp", p.TCP != ""}, {"exec", len(p.Exec) > 0}} {
		if way.set {
			ways = append(ways, way.name)
		}
	}
	switch {
	case len(ways) > 1:
		return bad(ways[1], "there is %s already: one way is enough", ways[0])
	case p.FD != 0 && (p.FD < firstFree || p.FD > maxReadyFD):
		return bad("fd", "%d, must be %d to %d: the ones below are taken by the listeners and the segment", p.FD, firstFree, maxReadyFD)
	case p.Interval <= 0:
		return bad("interval", "%v, must be more than 0", p.Interval)
	case p.Timeout <= 0:
		return bad("timeout", "%v, must be more than 0", p.Timeout)
	case p.Threshold < 1:
		return bad("threshold", "%d, must be 1 or more", p.Threshold)
	}
	if p.HTTP != "" {
		u, err := url.Parse(fill(p.HTTP, probed{index: last}))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			return bad("http", "%q is no URL such as http://127.0.0.1:8080/health", p.HTTP)
		}
		if why := badPort(u.Port()); u.Port() != "" && why != "" {
			return bad("http", "%q: %s", p.HTTP, why)
		}
	}
	if p.TCP != "" && !strings.HasPrefix(p.TCP, "/") {
		_, port, err := net.SplitHostPort(fill(p.TCP, probed{index: last}))
		if err != nil {
			return bad("tcp", "%q is neither host:port nor the absolute path of a Unix socket", p.TCP)
		}
		if why := badPort(port); why != "" {
			return bad("tcp", "%q: %s", p.TCP, why)
		}
	}
	for _, text := range append([]string{p.HTTP, p.TCP}, p.Exec...) {
		for _, word := range placeholder.FindAllString(text, -1) {
			if fill(word, probed{}) == word {
				return bad(ways[0], "%s is unknown; there are {index}, {8080+index}, {worker} and {pid}", word)
			}
		}
	}
	return nil
}

// badPort returns the reason why nobody can be asked at a port, or "".
func badPort(port string) string {
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return fmt.Sprintf("the port %q is neither a number from 1 to 65535 nor the name of a service", port)
	}
	if n == 0 {
		return "nobody listens on port 0"
	}
	return ""
}

// maxReadyFD bounds the table that a child's descriptors are built in.
const maxReadyFD = 255

// probed is whom a probe asks.
type probed struct {
	index, pid int
	worker     string
}

var (
	placeholder = regexp.MustCompile(`\{[a-z0-9+]*\}`)
	sum         = regexp.MustCompile(`^\{([0-9]{1,9})\+index\}$`)
)

// fill replaces the placeholders in one text of a probe.
func fill(text string, who probed) string {
	return placeholder.ReplaceAllStringFunc(text, func(word string) string {
		switch word {
		case "{index}":
			return strconv.Itoa(who.index)
		case "{pid}":
			return strconv.Itoa(who.pid)
		case "{worker}":
			return who.worker
		}
		if m := sum.FindStringSubmatch(word); m != nil {
			n, _ := strconv.Atoi(m[1])
			return strconv.Itoa(n + who.index)
		}
		return word
	})
}

// endsWith tells whether an exit is on a list of statuses and signals, as
// RestartOn and NoRestartOn are: "3", "TERM".
func endsWith(list []string, e Exit) bool {
	how := strings.TrimPrefix(e.Signal, "SIG")
	if how == "" && e.Code != nil {
		how = strconv.Itoa(*e.Code)
	}
	return how != "" && slices.ContainsFunc(list, func(end string) bool {
		return strings.TrimPrefix(strings.ToUpper(end), "SIG") == how
	})
}

func validateEnds(field string, list []string) error {
	for _, end := range list {
		n, err := strconv.Atoi(end)
		if err == nil && (n < 0 || n > 255) {
			return &ConfigError{Field: field, Msg: fmt.Sprintf("%d is no exit status: 0 to 255", n)}
		}
		if err != nil && signalByName(end) == 0 {
			return &ConfigError{Field: field, Msg: fmt.Sprintf("%q is neither an exit status nor a signal of this system", end)}
		}
	}
	return nil
}

// validateHealth checks what concerns readiness, health and restarts.
func (r *RoleConfig) validateHealth() error {
	firstFree := 3 + len(r.Listen) + 1
	err := r.Ready.validate("ready", firstFree, r.Workers-1)
	if err == nil {
		err = r.Health.validate("health", firstFree, r.Workers-1)
	}
	if err == nil && r.Health.FD != 0 {
		err = &ConfigError{Field: "health.fd", Msg: "says that a worker is ready, not that it is in health"}
	}
	if err == nil && (r.Watchdog < 0 || r.Watchdog > 0 && r.Watchdog < time.Millisecond) {
		err = &ConfigError{Field: "watchdog", Msg: fmt.Sprintf("%v, must be 0 or at least 1ms", r.Watchdog)}
	}
	if err == nil {
		err = validateEnds("restart_on", r.RestartOn)
	}
	if err == nil {
		err = validateEnds("no_restart_on", r.NoRestartOn)
	}
	for _, end := range r.RestartOn {
		if err == nil && slices.Contains(r.NoRestartOn, end) {
			err = &ConfigError{Field: "restart_on", Msg: fmt.Sprintf("%s is in no_restart_on too", end)}
		}
	}
	var bad *ConfigError
	if errors.As(err, &bad) {
		bad.Role = r.Name
	}
	return err
}
