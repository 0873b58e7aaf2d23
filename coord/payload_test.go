package coord

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/standbyd/standbyd/coord/lease"
)

func TestPayloadIsHandedOn(t *testing.T) {
	type state struct{ A, B uint64 }
	path := filepath.Join(t.TempDir(), "segment")
	m := joinAt(t, path)
	l := campaign(t, m)
	c, err := ClaimOf[state](l)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.Read(); err != nil || v != (state{}) {
		t.Errorf("at first: %+v, %v", v, err)
	}
	if err := c.Write(state{1, 2}); err != nil {
		t.Fatal(err)
	}
	if c.Token() != uint64(l.Token()) {
		t.Errorf("token %d, want %d", c.Token(), l.Token())
	}
	if err := c.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Write(state{3, 4}); !errors.Is(err, ErrLost) {
		t.Errorf("a write after the release: %v, want ErrLost", err)
	}
	v, err := Payload[state](m)
	if err != nil {
		t.Fatal(err)
	}
	if got, term := v.Snapshot(); got != (state{1, 2}) || term != 1 {
		t.Errorf("read %+v of term %d", got, term)
	}
	m.Close()

	m = joinAt(t, path)
	c, err = ClaimOf[state](campaign(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Read(); err != nil || got != (state{1, 2}) {
		t.Errorf("the next leader reads %+v, %v", got, err)
	}
	if _, err := Payload[*int](m); !errors.Is(err, lease.ErrPayload) {
		t.Errorf("a pointer: %v, want ErrPayload", err)
	}
	if _, err := Payload[[64]byte](m); !errors.Is(err, lease.ErrPayload) {
		t.Errorf("64 bytes in 48: %v, want ErrPayload", err)
	}
}

func TestPayloadSize(t *testing.T) {
	if _, err := Payload[[64]byte](join(t, WithPayload(64))); err != nil {
		t.Error(err)
	}
}
