//go:build unix

package stage

import (
	"bytes"
	"reflect"
	"syscall"
	"testing"
)

func number(n int) *int { return &n }

var orders = map[string]*Order{
	"nothing": {Umask: -1},
	"all of it": {
		Path: "/bin/sh", Args: []string{"sh", "", "a\xff\nb"}, Env: []string{"A=1", "B="}, Dir: "/", Umask: 0o22, ListenPID: true,
		Credential: &Credential{UID: 1<<32 - 1, GID: 7, Groups: []uint32{1, 2, 3}},
		Nice:       number(-20), OOMScoreAdj: number(1000), NoNewPrivs: true,
		Limits: []Limit{{Resource: 9, Soft: 1, Hard: ^uint64(0), Text: "as 1:unlimited", Last: true}, {Resource: 7, Text: "nofile 0:0"}},
	},
}

func TestOrderIsReadAsItWasWritten(t *testing.T) {
	for name, want := range orders {
		frame := want.Frame()
		got, err := decodeOrder(frame[lengthSize:])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read as %+v, %v", name, got, err)
		}
		if n := (&decoder{b: frame}).number(); n != uint64(len(frame)-lengthSize) {
			t.Errorf("%s: the frame says %d bytes, and has %d", name, n, len(frame)-lengthSize)
		}
	}
}

func TestPartOfAnOrderIsNone(t *testing.T) {
	for name, o := range orders {
		whole := o.Frame()[lengthSize:]
		for n := range whole {
			if _, err := decodeOrder(whole[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes were read as an order", name, n, len(whole))
			}
		}
		if _, err := decodeOrder(append(bytes.Clone(whole), 0)); err == nil {
			t.Errorf("%s: one more byte was read as an order", name)
		}
	}
}

func TestFailureIsReadAsItWasWritten(t *testing.T) {
	want := &Failure{Err: syscall.EPERM, Step: "limit", On: "nofile 1:2", Advice: "ask root"}
	whole := want.encode()
	if got, err := DecodeFailure(whole); err != nil || *got != *want {
		t.Errorf("read as %+v, %v", got, err)
	}
	for n := range whole {
		if _, err := DecodeFailure(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were read as a failure", n, len(whole))
		}
	}
}

func FuzzOrder(f *testing.F) {
	for _, o := range orders {
		f.Add(o.Frame()[lengthSize:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeOrder(b)
		if err != nil {
			return
		}
		again, err := decodeOrder(o.Frame()[lengthSize:])
		if err != nil || !reflect.DeepEqual(o, again) {
			t.Errorf("%+v is read as %+v, %v", o, again, err)
		}
	})
}
