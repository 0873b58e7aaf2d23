package plugins

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/standbyd/standbyd/plugins/internal/wire"
)

// moments lists the interfaces that Serve looks for; the word is empty for one
// that needs no call of its own.
var moments = []struct {
	method, word string
	face         reflect.Type
}{
	{"Describe", "", reflect.TypeFor[Describer]()},
	{"Configure", wire.HookConfigure, reflect.TypeFor[Configurer]()},
	{"PrePromote", wire.HookPrePromote, reflect.TypeFor[PrePromoter]()},
	{"OnPromote", wire.HookOnPromote, reflect.TypeFor[Promoter]()},
	{"OnDemote", wire.HookOnDemote, reflect.TypeFor[Demoter]()},
	{"OnLeaderChange", wire.HookOnLeaderChange, reflect.TypeFor[LeaderWatcher]()},
	{"Stop", wire.HookStop, reflect.TypeFor[Stopper]()},
}

// wanted returns the words of the hooks that impl implements. A method with a
// moment's name and another signature is an error: the compiler does not see
// it, and a hook that is silently never called is worse than no start.
func wanted(impl any) ([]string, error) {
	if impl == nil {
		return nil, errors.New("serve plugin: nil has no hooks")
	}
	t := reflect.TypeOf(impl)
	var words []string
	for _, m := range moments {
		if t.Implements(m.face) {
			if m.word != "" {
				words = append(words, m.word)
			}
			continue
		}
		if got, ok := t.MethodByName(m.method); ok {
			return nil, fmt.Errorf("serve plugin: %v has a method %s that is no hook: want %s, have %s",
				t, m.method, signature(m.face.Method(0).Type, 0), signature(got.Type, 1))
		}
		if t.Kind() != reflect.Pointer {
			if _, ok := reflect.PointerTo(t).MethodByName(m.method); ok {
				return nil, fmt.Errorf("serve plugin: %v has its %s on the pointer: serve &%s{...}", t, m.method, t.Name())
			}
		}
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("serve plugin: %v implements no hook; want at least one of Configure, PrePromote, OnPromote, OnDemote, OnLeaderChange", t)
	}
	return words, nil
}

// signature prints a method's type without its receiver, which is the first
// parameter of a concrete type's method and absent from an interface's.
func signature(f reflect.Type, receiver int) string {
	var in, out []string
	for i := receiver; i < f.NumIn(); i++ {
		in = append(in, f.In(i).String())
	}
	for i := range f.NumOut() {
		out = append(out, f.Out(i).String())
	}
	return "func(" + strings.Join(in, ", ") + ") " + strings.Join(out, ", ")
}
