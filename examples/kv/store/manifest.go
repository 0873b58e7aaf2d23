package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"
)

// Both kinds of files begin alike:
//
//	offset size
//	     0    8  magic: "kvJRNL01" or "kvSNAP01"
//	     8    4  CRC32C of bytes 12 to the end of the JSON
//	    12    4  length of the JSON
//	    16       JSON: manifest or snapshotHeader
const (
	journalMagic  = "kvJRNL01"
	snapshotMagic = "kvSNAP01"
	headerFixed   = 16
	maxHeader     = 1 << 20
)

// counted is how much of one older journal counts.
type counted struct {
	ID     ID     `json:"journal"`
	Length int64  `json:"length"`   // bytes from the start of the file
	Seq    uint64 `json:"sequence"` // of the last record within Length
}

// manifest is the beginning of a journal. It names everything that came
// before: the state at Base, then the rest of Counted in order, then the
// journal's own records.
type manifest struct {
	ID      ID        `json:"journal"`
	Role    string    `json:"role,omitempty"`
	Salt    uint64    `json:"salt"`
	Base    *Position `json:"base"`    // of a snapshot; null: from the very beginning
	Counted []counted `json:"counted"` // ascending, from Base's journal on
	At      time.Time `json:"at"`      // for people only
}

// count returns how much of id counts under m, and whether any of it does.
func (m *manifest) count(id ID) (counted, bool) {
	for _, c := range m.Counted {
		if c.ID == id {
			return c, true
		}
	}
	return counted{}, false
}

// start is the sequence with which m's own records continue.
func (m *manifest) start() uint64 {
	if n := len(m.Counted); n > 0 {
		return m.Counted[n-1].Seq
	}
	return 0
}

// check says whether m makes sense as the manifest of journal id.
func (m *manifest) check(id ID) error {
	if m.ID != id {
		return fmt.Errorf("it says that it is %s", m.ID)
	}
	last := counted{}
	for _, c := range m.Counted {
		if c.ID.Compare(last.ID) <= 0 || c.Seq < last.Seq || c.Length < headerFixed {
			return fmt.Errorf("its list of journals is not in order at %s", c.ID)
		}
		last = c
	}
	if last.ID.Compare(id) >= 0 {
		return fmt.Errorf("it counts %s, which is not older", last.ID)
	}
	if m.Base != nil && !slices.ContainsFunc(m.Counted, func(c counted) bool { return c.ID == m.Base.ID && c.Length >= m.Base.Offset }) {
		return fmt.Errorf("its base, %s, is not in its list", m.Base)
	}
	return nil
}

// continues says whether m, the manifest of a newer journal, goes on from
// what older, the manifest of a journal that m counts, says of the past. A
// difference means that the two were written by different histories.
func (m *manifest) continues(older *manifest) error {
	for _, c := range m.Counted {
		if c.ID.Compare(older.ID) >= 0 {
			break
		}
		if o, ok := older.count(c.ID); !ok || o != c {
			return fmt.Errorf("%w: %s counts %d bytes of %s, but %s counts %d", ErrCorrupt, m.ID, c.Length, c.ID, older.ID, o.Length)
		}
	}
	return nil
}

func encodeHeader(magic string, v any) ([]byte, error) {
	js, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(js) > maxHeader {
		return nil, fmt.Errorf("header of %d bytes is larger than %d", len(js), maxHeader)
	}
	b := make([]byte, headerFixed, headerFixed+len(js))
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(js)))
	b = append(b, js...)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b, nil
}

// decodeHeader reads a header into v and returns its length in the file.
func decodeHeader(r io.ReaderAt, magic string, v any) (int64, error) {
	var fixed [headerFixed]byte
	if _, err := r.ReadAt(fixed[:], 0); err != nil {
		return 0, fmt.Errorf("read its first %d bytes: %w", headerFixed, err)
	}
	if string(fixed[:8]) != magic {
		return 0, fmt.Errorf("it begins with %q, not %q", fixed[:8], magic)
	}
	n := binary.LittleEndian.Uint32(fixed[12:])
	if n > maxHeader {
		return 0, fmt.Errorf("its header claims %d bytes", n)
	}
	js := make([]byte, n)
	if _, err := r.ReadAt(js, headerFixed); err != nil {
		return 0, fmt.Errorf("read its header of %d bytes: %w", n, err)
	}
	sum := crc32.Update(crc32.Checksum(fixed[12:], castagnoli), castagnoli, js)
	if want := binary.LittleEndian.Uint32(fixed[8:]); sum != want {
		return 0, fmt.Errorf("the checksum of its header is %08x, want %08x", sum, want)
	}
	if err := json.Unmarshal(js, v); err != nil {
		return 0, fmt.Errorf("its header: %w", err)
	}
	return headerFixed + int64(n), nil
}
