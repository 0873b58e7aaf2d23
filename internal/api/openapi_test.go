package api

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/supervisor"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

func TestOpenAPIFile(t *testing.T) {
	const file = "../../docs/openapi.json"
	want, err := json.MarshalIndent(document(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s (%v) is not what the code says; run go test ./internal/api -run OpenAPI -update", file, err)
	}
}

// reloadedAlways is a daemon whose config file has changed.
type reloadedAlways struct{}

func (reloadedAlways) Plan(context.Context) (supervisor.Reloaded, error) {
	return supervisor.Reloaded{
		Plan:  supervisor.Plan{Changes: []supervisor.Change{{Role: "kv", Key: "tick", Cost: supervisor.CostRole}}, Roles: []supervisor.RolePlan{}},
		Roles: []supervisor.RoleReloaded{{Role: "kv", Rolled: supervisor.Rolled{Started: []string{"kv-0"}, Stopped: []string{}, Left: []string{}}}},
	}, nil
}

func (r reloadedAlways) Reload(ctx context.Context) (supervisor.Reloaded, error) { return r.Plan(ctx) }

// TestEveryAnswerIsAsDocumented asks the server for each route, with the zero
// request, and holds what it answers against the schema.
func TestEveryAnswerIsAsDocumented(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	s := NewServer(&puppet{}, func() {}, stopped)
	s.Reloader = reloadedAlways{}
	server := httptest.NewServer(s.handler())
	defer server.Close()
	whole := document()
	known := whole["components"].(object)["schemas"].(object)
	for _, r := range routes {
		body := io.Reader(nil)
		if r.request != nil {
			b, err := json.Marshal(r.request)
			if err != nil {
				t.Fatal(err)
			}
			if _, isSignal := r.request.(SignalRequest); isSignal {
				b = []byte(`{"target":"kv/0","signal":"TERM"}`)
			}
			if _, isDrill := r.request.(DrillRequest); isDrill {
				b = []byte(`{"role":"kv","fault":"kill","count":2}`)
			}
			body = bytes.NewReader(b)
		}
		query := url.Values{}
		for _, p := range r.query {
			if p.required {
				query.Set(p.name, "kv/1")
			}
		}
		request, err := http.NewRequestWithContext(t.Context(), r.method, server.URL+r.path+"?"+query.Encode(), body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != 200 {
			t.Errorf("%s: %v, status %d, %s", r.path, err, answer.StatusCode, b)
			continue
		}
		call := whole["paths"].(object)[r.path].(object)[strings.ToLower(r.method)].(object)
		for media, content := range call["responses"].(object)["200"].(object)["content"].(object) {
			if got := answer.Header.Get("Content-Type"); got != media {
				t.Errorf("%s: it is %s, documented as %s", r.path, got, media)
			}
			schema := content.(object)["schema"].(object)
			values := [][]byte{b}
			if r.stream {
				values = nil
				for line := range bytes.Lines(b) {
					if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok || r.method == "POST" {
						values = append(values, append([]byte{}, data...))
					}
				}
			}
			for _, v := range values {
				var value any
				if err := json.Unmarshal(v, &value); err != nil {
					t.Errorf("%s: %v in %s", r.path, err, v)
				} else if why := against(known, schema, value, "answer"); why != "" {
					t.Errorf("%s: %s in %s", r.path, why, v)
				}
			}
		}
	}
}

// against says why a value does not fit a schema, "" if it does.
func against(known, schema object, value any, at string) string {
	if ref, ok := schema["$ref"].(string); ok {
		return against(known, known[strings.TrimPrefix(ref, "#/components/schemas/")].(object), value, at)
	}
	if any, ok := schema["anyOf"].([]object); ok {
		if value == nil {
			return ""
		}
		return against(known, any[0], value, at)
	}
	want := map[string]reflect.Kind{"string": reflect.String, "boolean": reflect.Bool, "number": reflect.Float64, "integer": reflect.Float64,
		"array": reflect.Slice, "object": reflect.Map}[schema["type"].(string)]
	if value == nil || reflect.TypeOf(value).Kind() != want {
		return at + " is no " + schema["type"].(string)
	}
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			if why := against(known, schema["items"].(object), v, at+"[]"); why != "" {
				return why
			}
		}
	case map[string]any:
		properties, _ := schema["properties"].(object)
		for name, v := range value {
			p, ok := properties[name].(object)
			if !ok {
				if p, ok = schema["additionalProperties"].(object); !ok {
					return at + "." + name + " is not documented"
				}
			}
			if why := against(known, p, v, at+"."+name); why != "" {
				return why
			}
		}
		required, _ := schema["required"].([]string)
		for _, name := range required {
			if _, ok := value[name]; !ok {
				return at + "." + name + " is missing"
			}
		}
	}
	return ""
}
