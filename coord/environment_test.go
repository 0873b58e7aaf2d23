package coord

import (
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestReadEnvironment(t *testing.T) {
	full := map[string]string{
		envRole: "kv", envWorker: "kv-2", envIndex: "2", envSegment: "/run/s", envSegmentFD: "5",
		envListenFDs: "http=3,admin=4", envNotify: "/run/n", envPriority: "-7", envNoFailover: "1", envAdmission: "1",
	}
	e, err := readEnvironment(func(k string) string { return full[k] })
	if err != nil {
		t.Fatal(err)
	}
	want := environment{
		role: "kv", worker: "kv-2", index: 2, segment: "/run/s", segmentFD: 5, notify: "/run/n",
		priority: -7, noFailover: true, admission: true, listeners: []listenFD{{"http", 3}, {"admin", 4}},
	}
	if !reflect.DeepEqual(e, want) {
		t.Errorf("got %+v, want %+v", e, want)
	}

	_, err = readEnvironment(func(string) string { return "" })
	if !errors.Is(err, ErrNotSupervised) || !strings.Contains(err.Error(), "JoinFile") {
		t.Errorf("outside standbyd: %v, want ErrNotSupervised and the way out", err)
	}

	// A child of a worker inherits its environment, and is not the worker.
	full[envPID] = "1"
	if _, err := readEnvironment(func(k string) string { return full[k] }); !errors.Is(err, ErrNotSupervised) || !strings.Contains(err.Error(), "pid 1 ") {
		t.Errorf("in a child of a worker: %v, want ErrNotSupervised and whose child", err)
	}
	full[envPID] = strconv.Itoa(os.Getpid())
	if _, err := readEnvironment(func(k string) string { return full[k] }); err != nil {
		t.Errorf("in the worker itself: %v", err)
	}

	for name, value := range map[string]string{
		envIndex: "one", envSegmentFD: "2", envPriority: "99999999999", envListenFDs: "http=3,http=4",
	} {
		bad := map[string]string{envSegment: "/run/s", name: value}
		_, err := readEnvironment(func(k string) string { return bad[k] })
		if !errors.Is(err, ErrEnvironment) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v, want ErrEnvironment naming the variable", name, value, err)
		}
	}
}

func TestParseListenFDs(t *testing.T) {
	for _, bad := range []string{"http", "=3", "http=", "http=2", "http=x", "a=3,b=3", "a=3,", ","} {
		if fds, err := parseListenFDs(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, fds)
		}
	}
	if fds, err := parseListenFDs(""); err != nil || fds != nil {
		t.Errorf("empty: %v, %v", fds, err)
	}
}
