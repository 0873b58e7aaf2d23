package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a request says is either understood to the last word or refused: what is
// left out of account may be what was meant.

// decode reads the one JSON object of a request's body.
func decode[T any](w http.ResponseWriter, r *http.Request) (v T, ok bool) {
	body, ok := read(w, r)
	if ok && len(body) == 0 {
		ok = false
		fail(w, badRequest("the request has no body; it has to be a JSON object with "+fieldsIn(v)))
	}
	if !ok {
		return v, false
	}
	if err := decodeInto(&v, body); err != nil {
		fail(w, err)
		return v, false
	}
	return v, true
}

// nothing lets a request pass that has no body, or an object without fields.
func nothing(w http.ResponseWriter, r *http.Request) bool {
	body, ok := read(w, r)
	if !ok || len(body) == 0 {
		return ok
	}
	if err := decodeInto(&struct{}{}, body); err != nil {
		fail(w, err)
		return false
	}
	return true
}

// read is the body without the space around it.
func read(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		fail(w, badRequest(fmt.Sprintf("the body has more than %d bytes", large.Limit)))
		return nil, false
	}
	if err != nil {
		fail(w, fmt.Errorf("read the body of the request: %w", err))
		return nil, false
	}
	return bytes.TrimSpace(body), true
}

// decodeInto is strict, and its errors speak of JSON, not of Go.
func decodeInto(v any, body []byte) error {
	if body[0] != '{' {
		return badRequest("the body has to be a JSON object with " + fieldsIn(v))
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		if rest := bytes.TrimSpace(body[d.InputOffset():]); len(rest) > 0 {
			return badRequest(fmt.Sprintf("the body goes on after its JSON object: %.40q", rest))
		}
		return nil
	case errors.As(err, &syntax):
		return badRequest(fmt.Sprintf("the body is no JSON: %v, at byte %d", syntax, syntax.Offset))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("the body is no JSON: it ends in the middle")
	case errors.As(err, &kind):
		return badRequest(fmt.Sprintf("field %q is given as %s, and has to be %s", kind.Field, kind.Value, kindOf(kind.Type)))
	}
	if field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return badRequest("unknown field " + field + "; there is " + fieldsIn(v))
	}
	return badRequest(strings.TrimPrefix(err.Error(), "json: "))
}

// kindOf is a Go type in the words of JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Struct:
		return "an object"
	}
	return "something else"
}

// fieldsIn names the fields of a request.
func fieldsIn(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	if len(names) == 0 {
		return "nothing in it"
	}
	return strings.Join(names, ", ")
}

// millis is a time of a request.
func millis(field string, ms int64) (time.Duration, error) {
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, badRequest(fmt.Sprintf("%s: %d: 0 or more milliseconds, at most 292 years", field, ms))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// asked lets a request through to h if its query has these parameters only,
// each once and in its form.
func asked(parameters []parameter, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := checkQuery(parameters, r.URL.RawQuery); err != nil {
			fail(w, err)
			return
		}
		h(w, r)
	}
}

func checkQuery(parameters []parameter, raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return badRequest("the query cannot be read: " + err.Error())
	}
	for _, p := range parameters {
		values, given := query[p.name]
		delete(query, p.name)
		switch {
		case !given && p.required:
			return badRequest(fmt.Sprintf("the parameter %s is missing: %s", p.name, p.doc))
		case !given:
			continue
		case len(values) > 1:
			return badRequest(fmt.Sprintf("the parameter %s is given %d times", p.name, len(values)))
		}
		switch p.kind {
		case "integer":
			if _, err := strconv.ParseUint(values[0], 10, 63); err != nil {
				return badRequest(fmt.Sprintf("the parameter %s is %q: it has to be a number, 0 or more", p.name, values[0]))
			}
		case "boolean":
			if values[0] != "true" && values[0] != "false" {
				return badRequest(fmt.Sprintf("the parameter %s is %q: it has to be true or false", p.name, values[0]))
			}
		}
	}
	if len(query) == 0 {
		return nil
	}
	var unknown, known []string
	for name := range query {
		unknown = append(unknown, fmt.Sprintf("%q", name))
	}
	slices.Sort(unknown)
	for _, p := range parameters {
		known = append(known, p.name)
	}
	there := "there are none"
	if len(known) > 0 {
		there = "there is " + strings.Join(known, ", ")
	}
	return badRequest(fmt.Sprintf("unknown parameter %s; %s", strings.Join(unknown, ", "), there))
}

// told answers what mux has nothing for as all other errors are answered.
func told(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := refusal{header: http.Header{}}
		h.ServeHTTP(&refused, r)
		switch refused.status {
		case http.StatusNotFound:
			fail(w, fmt.Errorf("%w: %s; GET /v1/openapi.json says what there is", errNoPath, r.URL.Path))
		case http.StatusMethodNotAllowed:
			allow := refused.header.Get("Allow")
			w.Header().Set("Allow", allow)
			fail(w, fmt.Errorf("%w: %s %s; there is %s", errBadMethod, r.Method, r.URL.Path, allow))
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// refusal takes what mux would answer.
type refusal struct {
	header http.Header
	status int
}

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
func (r *refusal) WriteHeader(status int)      { r.status = status }
