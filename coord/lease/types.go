package lease

import (
	"fmt"
	"reflect"

	"github.com/standbyd/standbyd/coord/shm"
)

// sizeOf is the size of T in bytes, after a check that T may be shared: its
// bytes alone are the value, in every process. The error is ErrPayload and
// names the field that is in the way.
func sizeOf[T any]() (int, error) {
	t := reflect.TypeFor[T]()
	if where, why := unshareable(t); why != "" {
		return 0, fmt.Errorf("payload type %v: %s%s: %w", t, where, why, ErrPayload)
	}
	if t.Size() > shm.MaxCell {
		return 0, fmt.Errorf("payload type %v has %d bytes, at most %d: %w", t, t.Size(), shm.MaxCell, ErrPayload)
	}
	return int(t.Size()), nil
}

// unshareable says what in t has no meaning in another process, and the path
// to it, "field.field[]: "; why is empty if there is nothing.
func unshareable(t reflect.Type) (where, why string) {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return "", ""
	case reflect.Array:
		if t.Len() == 0 {
			return "", "" // holds nothing, as [0]func() does
		}
		where, why = unshareable(t.Elem())
		return join("[]", where), why
	case reflect.Struct:
		for f := range t.Fields() {
			if where, why = unshareable(f.Type); why != "" {
				return join(f.Name, where), why
			}
		}
		return "", ""
	case reflect.Uintptr:
		return "", "a uintptr is an address, which means nothing in another process"
	}
	return "", fmt.Sprintf("a %v holds a pointer, which means nothing in another process", t.Kind())
}

func join(name, rest string) string {
	switch {
	case rest == "":
		return name + ": "
	case rest[0] == '[':
		return name + rest
	}
	return name + "." + rest
}
