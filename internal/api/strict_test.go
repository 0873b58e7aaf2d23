package api

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/supervisor"
)

// askOf has a handler answer, and reads the error of what it answers.
func askOf(t *testing.T, h http.Handler, method, target, body string) (*httptest.ResponseRecorder, failure) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	var failed struct{ Error failure }
	if w.Code >= 400 && w.Code != http.StatusServiceUnavailable {
		if err := json.Unmarshal(w.Body.Bytes(), &failed); err != nil || failed.Error.Code == "" || failed.Error.Message == "" {
			t.Errorf("%s %s is no JSON error: %s", method, target, w.Body)
		}
	}
	return w, failed.Error
}

// goWords are what an error must not have.
var goWords = regexp.MustCompile(`Go |api\.|struct|EOF|unmarshal|json:`)

// TestNothingIsDoneThatIsNotUnderstood: each POST with a body that has more in
// it than it may, or other things, is refused, and nothing has happened.
func TestNothingIsDoneThatIsNotUnderstood(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	stops := 0
	s := NewServer(&puppet{}, func() { stops++ }, stopped)
	s.Reloader = reloadedAlways{}
	h := s.handler()
	for _, r := range routes {
		if r.method != "POST" {
			continue
		}
		b, err := json.Marshal(r.request)
		if err != nil {
			t.Fatal(err)
		}
		bodies := map[string]string{
			`{"surplus":1}`:         `unknown field "surplus"; there `,
			string(b) + " trailing": "trailing",
			string(b) + string(b):   "goes on",
			"[]":                    "JSON object",
			"null":                  "JSON object",
			`{"role`:                "ends in the middle",
			"{]":                    "no JSON",
			"{" + strings.Repeat(" ", maxRequest) + "}": "more than",
		}
		if r.path != "/v1/shutdown" {
			bodies[""] = "no body"
		}
		for body, says := range bodies {
			w, failed := askOf(t, h, "POST", r.path, body)
			if w.Code != http.StatusBadRequest || failed.Code != codeBadRequest || !strings.Contains(failed.Message, says) || goWords.MatchString(failed.Message) {
				t.Errorf("POST %s %.60s: %d %+v, want %q", r.path, body, w.Code, failed, says)
			}
		}
		if w, failed := askOf(t, h, "POST", r.path+"?role=kv", string(b)); w.Code != http.StatusBadRequest || !strings.Contains(failed.Message, `unknown parameter "role"`) {
			t.Errorf("POST %s with a parameter: %d %+v", r.path, w.Code, failed)
		}
	}
	if stops > 0 {
		t.Error("a shutdown that was refused has stopped it")
	}
	for _, body := range []string{"", "{}", " \n"} {
		if w, _ := askOf(t, h, "POST", "/v1/shutdown", body); w.Code != http.StatusOK {
			t.Errorf("shutdown with %q: %d", body, w.Code)
		}
	}
	if stops != 3 {
		t.Errorf("stopped %d times of 3", stops)
	}
}

// TestValuesThatMakeNoSense are refused in words.
func TestValuesThatMakeNoSense(t *testing.T) {
	s := NewServer(&puppet{}, func() {}, nil)
	s.Reloader = reloadedAlways{}
	for _, c := range [][3]string{
		{"/v1/drill", `{"role":"kv","count":-1}`, "count: -1 rounds"},
		{"/v1/drill", `{"role":"kv","interval_ms":-1}`, "interval_ms: -1"},
		{"/v1/drill", `{"role":"kv","interval_ms":9223372036854775807}`, "interval_ms"},
		{"/v1/drill", `{"role":"kv","fault":"bad"}`, `fault: there is no "bad"; there is [kill stop hang exit]`},
		{"/v1/stop", `{"target":"kv","limit_ms":-5}`, "limit_ms: -5"},
		{"/v1/pause", `{"for_ms":-5}`, "for_ms: -5"},
		{"/v1/scale", `{"role":"kv","workers":"3"}`, `field "workers" is given as string, and has to be an integer`},
		{"/v1/scale", `{"role":3}`, `field "role" is given as number, and has to be a string`},
		{"/v1/reload", `{"plan":1}`, "true or false"},
	} {
		w, failed := askOf(t, s.handler(), "POST", c[0], c[1])
		if w.Code != http.StatusBadRequest || !strings.Contains(failed.Message, c[2]) || goWords.MatchString(failed.Message) {
			t.Errorf("%s %s: %d %+v", c[0], c[1], w.Code, failed)
		}
	}
}

// TestQueriesAreStrict: what is not understood would be left out of the answer.
func TestQueriesAreStrict(t *testing.T) {
	b := &shown{role: supervisor.RoleStatus{Name: "kv", Leader: "kv-0", Workers: []supervisor.WorkerStatus{{Name: "kv-0", State: supervisor.WorkerLeader}}}}
	s := NewServer(b, func() {}, nil)
	s.Table = func(io.Writer, supervisor.Snapshot, bool) error { return nil }
	h := s.handler()
	for target, says := range map[string]string{
		"/v1/status?rle=zz":              `unknown parameter "rle"; there is role, table`,
		"/v1/history?n=3":                `unknown parameter "n"; there is role`,
		"/v1/events?n=-1":                "n is \"-1\"",
		"/v1/events?n=x":                 "n is \"x\"",
		"/v1/events?n=1&n=2":             "given 2 times",
		"/v1/events?after=-3":            "after is",
		"/v1/events?follow=yes":          "true or false",
		"/v1/events?n=%zz":               "cannot be read",
		"/v1/pid":                        "target is missing",
		"/v1/candidates?to=kv-1":         "role is missing",
		"/v1/openapi.json?v=2":           "there are none",
		"/v1/status?table=big":           `there is no "big"`,
		"/leader?role=kv&wroker=kv-1":    `unknown parameter "wroker"; there is role, worker`,
		"/ready?worker=kv-1":             "unknown parameter",
		"/standby?role=kv&role=lone":     "given 2 times",
		"/v1/status?role=kv;table=plain": "cannot be read",
	} {
		w, failed := askOf(t, h, "GET", target, "")
		if w.Code != http.StatusBadRequest || !strings.Contains(failed.Message, says) || goWords.MatchString(failed.Message) {
			t.Errorf("GET %s: %d %+v, want %q", target, w.Code, failed, says)
		}
	}
	for _, target := range []string{"/live", "/live?x=1", "/ready", "/ready?role=kv", "/leader?role=kv", "/leader?role=kv&worker=kv-0", "/leader",
		"/v1/status", "/v1/status?role=kv", "/v1/status?role=", "/v1/events?n=0&after=0&follow=false", "/v1/openapi.json"} {
		for _, method := range []string{"GET", "HEAD"} {
			if w, failed := askOf(t, h, method, target, ""); w.Code != http.StatusOK {
				t.Errorf("%s %s: %d %+v", method, target, w.Code, failed)
			}
		}
	}
}

// TestWhatIsNotThere is told as all errors are, on the control socket and
// where only the probes are.
func TestWhatIsNotThere(t *testing.T) {
	s := NewServer(&puppet{}, func() {}, nil)
	for _, c := range []struct {
		h              http.Handler
		method, target string
		status         int
		allow, code    string
	}{
		{s.handler(), "GET", "/v1/nothing", 404, "", codeNoPath},
		{s.handler(), "POST", "/", 404, "", codeNoPath},
		{s.handler(), "PUT", "/v1/status", 405, "GET, HEAD", codeBadMethod},
		{s.handler(), "GET", "/v1/drill", 405, "POST", codeBadMethod},
		{s.handler(), "POST", "/live", 405, "GET, HEAD", codeBadMethod},
		{s.Probes(), "POST", "/live", 405, "GET, HEAD", codeBadMethod},
		{s.Probes(), "GET", "/v1/status", 404, "", codeNoPath},
	} {
		w, failed := askOf(t, c.h, c.method, c.target, "")
		if w.Code != c.status || failed.Code != c.code || w.Header().Get("Allow") != c.allow || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %+v %v", c.method, c.target, w.Code, failed, w.Header())
		}
	}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1//status", nil))
	if w.Code < 300 || w.Code > 399 || !strings.HasSuffix(w.Header().Get("Location"), "/v1/status") {
		t.Errorf("a path with a slash too many: %d %v", w.Code, w.Header())
	}
}
