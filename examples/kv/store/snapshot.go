package store

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// snapshotHeader begins a snapshot; one put record for each key follows, then
// one end record.
type snapshotHeader struct {
	Position Position   `json:"position"`
	Role     string     `json:"role,omitempty"`
	Salt     uint64     `json:"salt"`
	Token    role.Token `json:"token"` // of the leader that wrote it
	Keys     int        `json:"keys"`
	At       time.Time  `json:"at"` // for people only
}

// writeSnapshot writes the whole state as of p. The caller has confirmed p:
// whatever leader comes later counts its journal at least as far.
func writeSnapshot(ctx context.Context, d disk, dir string, h snapshotHeader, state map[string][]byte) (err error) {
	f, err := os.CreateTemp(dir, fmt.Sprintf(".%s-*%s", snapshotName(h.Position), tempSuffix))
	if err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	defer func() {
		f.Close()
		os.Remove(f.Name())
		if err != nil {
			err = fmt.Errorf("write a snapshot: %w", err)
		}
	}()
	h.Salt, h.Keys = newSalt(), len(state)
	head, err := encodeHeader(snapshotMagic, h)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	offset := int64(len(head))
	w.Write(head)
	var buf []byte
	put := func(r record) error {
		buf = appendRecord(buf[:0], h.Salt, offset, r)
		offset += int64(len(buf))
		_, err := w.Write(buf)
		return err
	}
	for key, value := range state {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := put(record{op: opPut, token: h.Token, key: key, value: value}); err != nil {
			return err
		}
	}
	if err := put(record{op: opEnd, token: h.Token, seq: uint64(len(state))}); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	err = d.publish(dir, f, snapshotName(h.Position))
	if errors.Is(err, os.ErrExist) {
		return nil // the same state was written before
	}
	return err
}

// loadSnapshot reads a whole snapshot, or nothing.
func loadSnapshot(dir string, p place, roleName string) (map[string][]byte, Position, error) {
	name := filepath.Join(dir, snapshotName(Position{ID: p.id, Offset: p.offset}))
	f, err := os.Open(name)
	if err != nil {
		return nil, Position{}, fmt.Errorf("open the snapshot: %w", err)
	}
	defer f.Close()
	bad := func(err error) (map[string][]byte, Position, error) {
		return nil, Position{}, fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
	}
	var h snapshotHeader
	offset, err := decodeHeader(f, snapshotMagic, &h)
	if err != nil {
		return bad(err)
	}
	if h.Position.ID != p.id || h.Position.Offset != p.offset {
		return bad(fmt.Errorf("it says that it is of %s", h.Position))
	}
	if h.Role != roleName {
		return nil, Position{}, fmt.Errorf("%w: %s is of role %q, not %q", ErrRole, name, h.Role, roleName)
	}
	state := make(map[string][]byte, min(h.Keys, 1<<20))
	r := bufio.NewReaderSize(io.NewSectionReader(f, offset, 1<<62), 256<<10)
	head, buf := make([]byte, recordHeader), []byte(nil)
	for {
		if _, err := io.ReadFull(r, head); err != nil {
			return bad(fmt.Errorf("it ends at byte %d without an end record: %w", offset, err))
		}
		buf = append(buf[:0], head...)
		n := bodyLength(head)
		buf = append(buf, make([]byte, n)...)
		if _, err := io.ReadFull(r, buf[recordHeader:]); err != nil {
			return bad(fmt.Errorf("record at byte %d: %w", offset, err))
		}
		rec, err := parseRecord(buf, h.Salt, offset)
		if err != nil {
			return bad(fmt.Errorf("at byte %d: %w", offset, err))
		}
		offset += rec.size()
		switch rec.op {
		case opPut:
			state[rec.key] = append([]byte(nil), rec.value...)
		case opEnd:
			if rec.seq != uint64(len(state)) || h.Keys != len(state) {
				return bad(fmt.Errorf("it holds %d keys, and says %d", len(state), h.Keys))
			}
			return state, h.Position, nil
		default:
			return bad(fmt.Errorf("at byte %d: operation %d does not belong in a snapshot", offset, rec.op))
		}
	}
}

// readSnapshotHeader says which place the snapshot stands for.
func readSnapshotHeader(dir string, p place) (snapshotHeader, Position, error) {
	name := filepath.Join(dir, snapshotName(Position{ID: p.id, Offset: p.offset}))
	f, err := os.Open(name)
	if err != nil {
		return snapshotHeader{}, Position{}, fmt.Errorf("open the snapshot: %w", err)
	}
	defer f.Close()
	var h snapshotHeader
	if _, err := decodeHeader(f, snapshotMagic, &h); err != nil {
		return h, Position{}, fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
	}
	return h, h.Position, nil
}

func newSalt() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
