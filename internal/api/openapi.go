package api

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// object is a JSON object of the document; encoding/json sorts its keys.
type object = map[string]any

// document is the interface in the words of OpenAPI 3.1, made from the routes
// and the Go types of their requests and answers.
func document() object {
	s := &schemas{known: object{}}
	failed := object{"description": "It was refused, or failed: a status of 400 or more.", "content": jsonContent(object{
		"type": "object", "properties": object{"error": s.of(reflect.TypeFor[failure]())}, "required": []string{"error"}})}
	paths := object{}
	for _, r := range routes {
		media, what := "application/json", "Done."
		if r.stream {
			media, what = "application/x-ndjson", "Lines, each of this form."
			if r.method == "GET" {
				media, what = "text/event-stream", "Events; the data of each is of this form."
			}
		}
		call := object{
			"summary":     r.summary,
			"operationId": strings.TrimPrefix(r.path, "/v1/"),
			"responses": object{
				"200":     object{"description": what, "content": object{media: object{"schema": s.of(reflect.TypeOf(r.response))}}},
				"default": failed,
			},
		}
		if r.request != nil {
			call["requestBody"] = object{"required": true, "content": jsonContent(s.of(reflect.TypeOf(r.request)))}
		}
		var parameters []object
		for _, p := range r.query {
			parameters = append(parameters, object{"name": p.name, "in": "query", "description": p.doc, "required": p.required, "schema": object{"type": p.kind}})
		}
		if parameters != nil {
			call["parameters"] = parameters
		}
		paths[r.path] = object{strings.ToLower(r.method): call}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title":       "standbyd control interface",
			"version":     "1",
			"description": "HTTP over the unix socket RUNTIME_DIR/standbyd.sock, for root, the daemon's own user, and the control group. Fields, parameters and values that are not described here are refused with 400, and nothing is done. Probes and metrics are in metrics.md.",
		},
		"paths":      paths,
		"components": object{"schemas": s.known},
	}
}

func jsonContent(schema object) object { return object{"application/json": object{"schema": schema}} }

// schemas collects the named types that are met.
type schemas struct{ known object }

var (
	timeType = reflect.TypeFor[time.Time]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
	ownType  = reflect.TypeFor[json.Marshaler]() // role.Token, a string
)

// of is the schema of a type as encoding/json writes it.
func (s *schemas) of(t reflect.Type) object {
	switch {
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return object{"anyOf": []object{s.of(t.Elem()), {"type": "null"}}}
	case t.Implements(textType), t.Implements(ownType):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	}
	return object{"type": "integer"}
}

func (s *schemas) structure(t reflect.Type) object {
	name := strings.NewReplacer("[", "Of", "]", "").Replace(t.Name())
	if i := strings.LastIndexAny(name, "./"); i >= 0 {
		name = "changedAnswerOf" + name[i+1:] // a generic type, named after its argument
	}
	if name != "" {
		name = strings.ToUpper(name[:1]) + name[1:]
		if _, known := s.known[name]; known {
			return object{"$ref": "#/components/schemas/" + name}
		}
		s.known[name] = nil // it may refer to itself
	}
	properties, required := object{}, []string{}
	s.fields(t, properties, &required)
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	if name == "" {
		return schema
	}
	s.known[name] = schema
	return object{"$ref": "#/components/schemas/" + name}
}

func (s *schemas) fields(t reflect.Type, properties object, required *[]string) {
	for f := range fieldsOf(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "":
			s.fields(f.Type, properties, required)
			continue
		case !f.IsExported() || tag == "-":
			continue
		case tag == "":
			tag = f.Name
		}
		if _, outer := properties[tag]; outer {
			continue // encoding/json prefers the field of the outer type
		}
		properties[tag] = s.of(f.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, tag)
		}
	}
}

// fieldsOf yields plain fields before embedded structs, whose fields they hide.
func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, embedded := range []bool{false, true} {
			for i := range t.NumField() {
				if f := t.Field(i); f.Anonymous == embedded && !yield(f) {
					return
				}
			}
		}
	}
}
