package plugins

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Table is a plugin's config table as the role's configuration has it. Values
// are string, bool, int64, float64, []any and map[string]any; a date is its
// RFC 3339 string.
type Table map[string]any

// Decode copies the table into the struct that into points to. A field takes
// the key of its `toml` tag, or its name in lower case; "-" hides it. Fields
// whose key is absent keep their value, which is how defaults are set. A key
// that no field takes is an error, as is a value of another kind.
//
// Field types: string, bool, integers, floats, time.Duration (written as a
// string with a unit, see [ParseDuration]), slices, maps with string keys, and
// structs of these. Decode may leave into partly filled when it fails.
func (t Table) Decode(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode config into %T: want a pointer to a struct", into)
	}
	return decodeStruct(v.Elem(), t, "")
}

// ParseDuration reads a duration with units: those of time.ParseDuration, and
// d for days of 24 hours in front ("7d", "1d12h"). A bare number is an error.
func ParseDuration(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, durationError(s)
		}
		return d, nil
	}
	// A day is read as an hour first, so that the same rules hold for both.
	d, err := time.ParseDuration(days + "h")
	if err != nil || d.Abs() > math.MaxInt64/24 {
		return 0, durationError(s)
	}
	d *= 24
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || d < 0 || d > math.MaxInt64-more {
		return 0, durationError(s)
	}
	return d + more, nil
}

func durationError(s string) error {
	return fmt.Errorf("%q is no duration; write a number with a unit, like \"30s\", \"5m\", \"12h\" or \"7d\"", s)
}

func decodeStruct(v reflect.Value, table map[string]any, path string) error {
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if !f.IsExported() || key == "-" {
			continue
		}
		if key == "" {
			key = strings.ToLower(f.Name)
		}
		fields[key] = v.Field(i)
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		f, ok := fields[key]
		if !ok {
			return unknownKey(path+key, key, slices.Sorted(maps.Keys(fields)))
		}
		if err := decodeValue(f, table[key], path+key); err != nil {
			return err
		}
	}
	return nil
}

func unknownKey(path, key string, known []string) error {
	if near := nearest(key, known); near != "" {
		return fmt.Errorf("config key %q is unknown; did you mean %q?", path, near)
	}
	return fmt.Errorf("config key %q is unknown; there are: %s", path, strings.Join(known, ", "))
}

var durationType = reflect.TypeFor[time.Duration]()

func decodeValue(v reflect.Value, value any, path string) error {
	wrong := func(want string) error {
		return fmt.Errorf("config key %q: want %s, have %s", path, want, kindOf(value))
	}
	if v.Type() == durationType {
		s, ok := value.(string)
		if !ok {
			return wrong("a duration in quotes, like \"30s\"")
		}
		d, err := ParseDuration(s)
		if err != nil {
			return fmt.Errorf("config key %q: %w", path, err)
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		s, ok := value.(string)
		if !ok {
			return wrong("a string")
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := value.(bool)
		if !ok {
			return wrong("true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := value.(int64)
		if !ok {
			return wrong("a whole number")
		}
		if v.OverflowInt(n) {
			return fmt.Errorf("config key %q: %d is out of range", path, n)
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, ok := value.(int64)
		if !ok {
			return wrong("a whole number")
		}
		if n < 0 || v.OverflowUint(uint64(n)) {
			return fmt.Errorf("config key %q: %d is out of range", path, n)
		}
		v.SetUint(uint64(n))
	case reflect.Float32, reflect.Float64:
		switch n := value.(type) {
		case float64:
			v.SetFloat(n)
		case int64:
			v.SetFloat(float64(n))
		default:
			return wrong("a number")
		}
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			return wrong("a list")
		}
		out := reflect.MakeSlice(v.Type(), len(list), len(list))
		for i, item := range list {
			if err := decodeValue(out.Index(i), item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		v.Set(out)
	case reflect.Map:
		table, ok := value.(map[string]any)
		if !ok || v.Type().Key().Kind() != reflect.String {
			return wrong("a table")
		}
		out := reflect.MakeMapWithSize(v.Type(), len(table))
		for _, key := range slices.Sorted(maps.Keys(table)) {
			item := reflect.New(v.Type().Elem()).Elem()
			if err := decodeValue(item, table[key], path+"."+key); err != nil {
				return err
			}
			out.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
		}
		v.Set(out)
	case reflect.Struct:
		table, ok := value.(map[string]any)
		if !ok {
			return wrong("a table")
		}
		return decodeStruct(v, table, path+".")
	case reflect.Interface:
		if v.NumMethod() != 0 {
			return fmt.Errorf("config key %q: a field of type %s cannot be decoded", path, v.Type())
		}
		if value != nil {
			v.Set(reflect.ValueOf(value))
		}
	default:
		return fmt.Errorf("config key %q: a field of type %s cannot be decoded", path, v.Type())
	}
	return nil
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("the string %q", value)
	case bool:
		return fmt.Sprint(value)
	case int64, float64:
		return fmt.Sprintf("the number %v", value)
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return fmt.Sprintf("%v", value)
}
