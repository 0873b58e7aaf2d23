package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestMetricsAndProbes: over the control socket and over TCP the same, with a
// failover in them, and named as the linter of Prometheus wants it.
func TestMetricsAndProbes(t *testing.T) {
	d := start(t, "metrics_address = \"127.0.0.1:0\"\n---\n")
	d.must("wait", "kv", "-T", "50s")
	var base string
	address := regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/metrics`)
	eventually.Holds(t, "the log names the address", func() bool {
		base = strings.TrimSuffix(address.FindString(d.stderr.String()), "/metrics")
		return base != ""
	})
	unix := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(d.dir, "run", "standbyd.sock"))
	}}}
	ask := func(c *http.Client, method, url string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	leader := strings.TrimSpace(d.must("pid", "kv/leader", "-o", "json"))
	name := regexp.MustCompile(`kv-[0-9]`).FindString(leader)
	eventually.Holds(t, "a standby is ready", func() bool {
		code, _ := ask(http.DefaultClient, "GET", base+"/standby?role=kv")
		return code == 200
	})
	for _, p := range []struct {
		path string
		code int
	}{
		{"/live", 200}, {"/ready", 200}, {"/ready?role=kv", 200}, {"/ready?role=ghost", 404},
		{"/leader?role=kv", 200}, {"/leader", 200}, {"/leader?role=kv&worker=" + name, 200}, {"/standby?role=kv&worker=" + name, 503},
		{"/leader?role=kv&worker=kv-9", 404}, {"/leader?role=ghost", 404},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			for via, c := range map[string]*http.Client{base: http.DefaultClient, "http://standbyd": unix} {
				if code, body := ask(c, method, via+p.path); code != p.code || method == "HEAD" && body != "" {
					t.Errorf("%s %s%s: %d %q, want %d", method, via, p.path, code, body, p.code)
				}
			}
		}
	}
	// Over TCP there is nothing else.
	if code, _ := ask(http.DefaultClient, "GET", base+"/v1/status"); code != 404 {
		t.Errorf("status over TCP: %d", code)
	}

	d.must("signal", "kv/leader", "KILL")
	var text string
	eventually.Holds(t, "the failover is counted", func() bool {
		_, text = ask(http.DefaultClient, "GET", base+"/metrics")
		return strings.Contains(text, `standbyd_failovers_total{reason="crash",role="kv"} 1`) &&
			strings.Contains(text, `standbyd_failover_phase_seconds_count{phase="active",role="kv"} 1`) &&
			strings.Contains(text, `standbyd_worker_exits_total{how="signal",role="kv",worker="`+name+`"} 1`)
	})
	for _, want := range []string{
		`standbyd_role_state{role="kv",state="led"} 1`,
		`standbyd_build_info{version="` + version + `"} 1`,
		`standbyd_tick_lateness_seconds_count{role="kv"} `,
		`standbyd_role_loop_busy_seconds_total{role="kv"} `,
		`standbyd_worker_beat_age_epochs{role="kv",worker="`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	documented, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (standbyd_\S+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(documented), "`"+name[1]+"`") {
			t.Errorf("docs/metrics.md does not name %s", name[1])
		}
	}
	if _, overUnix := ask(unix, "GET", "http://standbyd/metrics"); !strings.Contains(overUnix, "standbyd_failovers_total") {
		t.Error("no metrics over the control socket")
	}
}
