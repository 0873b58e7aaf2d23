package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// EncodeTable writes a plugin's config table as a JSON object. Values are what
// a TOML reader yields: strings, booleans, integers, floats, times, arrays and
// tables. A time becomes its RFC 3339 string. nil is the empty table.
func EncodeTable(table map[string]any) ([]byte, error) {
	if table == nil {
		return []byte("{}"), nil
	}
	b, err := json.Marshal(table)
	if err != nil {
		return nil, fmt.Errorf("encode the plugin's config: %w", err)
	}
	return b, nil
}

// DecodeTable reads what EncodeTable wrote. Integers come back as int64, other
// numbers as float64.
func DecodeTable(b []byte) (map[string]any, error) {
	table := map[string]any{}
	if len(b) == 0 {
		return table, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&table); err != nil {
		return nil, fmt.Errorf("decode the plugin's config: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode the plugin's config: more than one JSON value")
	}
	if table == nil { // "null"
		table = map[string]any{}
	}
	for k, v := range table {
		table[k] = plain(v)
	}
	return table, nil
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				return n
			}
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}
