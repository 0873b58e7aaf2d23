package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/standbyd/standbyd/coord/role"
)

// Bounds of what can be stored, in bytes.
const (
	MaxKey   = 512
	MaxValue = 1 << 20
)

// Record layout, little-endian:
//
//	offset size
//	     0    4  magic "kvR1"
//	     4    4  CRC32C of: the file's salt, the record's offset in the file, bytes 8 to the end
//	     8    4  n, length of key and value together
//	    12    2  length of the key
//	    14    1  operation
//	    15    1  zero
//	    16    8  token of the leader that wrote it
//	    24    8  sequence: one more than the record before it, over all journals
//	    32    8  durable: how long this journal was after the last fsync before this record
//	    40    n  key, value
//
// Salt and offset are part of the checksum so that bytes which look like a
// record, inside a value that some client chose, are never taken for one.
const (
	recordMagic  = "kvR1"
	recordHeader = 40
	maxRecord    = recordHeader + MaxKey + MaxValue
)

// Operations; they are on disk and append-only.
const (
	opPut    = 1
	opDelete = 2
	opEnd    = 3 // the last record of a snapshot; its sequence is the number of keys
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errShort and errBad say why no record was read. Both may be an unfinished
// write; where they stand decides whether they are damage.
var (
	errShort = errors.New("record is cut off")
	errBad   = errors.New("no valid record")
)

type record struct {
	op      byte
	token   role.Token
	seq     uint64
	durable int64
	key     string
	value   []byte // aliases the buffer that it was read from
}

func (r record) size() int64 { return int64(recordHeader + len(r.key) + len(r.value)) }

// appendRecord appends r as it will stand at offset of a file with this salt.
func appendRecord(b []byte, salt uint64, offset int64, r record) []byte {
	start := len(b)
	b = append(b, recordMagic...)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.key)+len(r.value)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.key)))
	b = append(b, r.op, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.token))
	b = binary.LittleEndian.AppendUint64(b, r.seq)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.durable))
	b = append(b, r.key...)
	b = append(b, r.value...)
	binary.LittleEndian.PutUint32(b[start+4:], recordSum(salt, offset, b[start+8:]))
	return b
}

func recordSum(salt uint64, offset int64, rest []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:8], salt)
	binary.LittleEndian.PutUint64(place[8:], uint64(offset))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, rest)
}

// parseRecord reads the record at the start of b, which stands at offset of a
// file with this salt. It returns errShort if b may be the beginning of a
// record, errBad if it cannot be one; both wrapped with what was seen. It
// trusts nothing in b and never panics.
func parseRecord(b []byte, salt uint64, offset int64) (record, error) {
	if len(b) < recordHeader {
		return record{}, errShort
	}
	if string(b[:4]) != recordMagic {
		return record{}, fmt.Errorf("%w: magic is %q", errBad, b[:4])
	}
	n := binary.LittleEndian.Uint32(b[8:])
	klen := uint32(binary.LittleEndian.Uint16(b[12:]))
	if n > MaxKey+MaxValue || klen > MaxKey || klen > n || n-klen > MaxValue {
		return record{}, fmt.Errorf("%w: lengths %d and %d are out of bounds", errBad, klen, n)
	}
	if uint32(len(b)-recordHeader) < n {
		return record{}, errShort
	}
	b = b[:recordHeader+int(n)]
	if got, want := recordSum(salt, offset, b[8:]), binary.LittleEndian.Uint32(b[4:]); got != want {
		return record{}, fmt.Errorf("%w: checksum %08x, want %08x", errBad, got, want)
	}
	r := record{
		op:      b[14],
		token:   role.Token(binary.LittleEndian.Uint64(b[16:])),
		seq:     binary.LittleEndian.Uint64(b[24:]),
		durable: int64(binary.LittleEndian.Uint64(b[32:])),
		key:     string(b[recordHeader : recordHeader+klen]),
		value:   b[recordHeader+klen:],
	}
	if r.op < opPut || r.op > opEnd || b[15] != 0 || r.durable < 0 {
		return record{}, fmt.Errorf("%w: operation %d, durable %d", errBad, r.op, r.durable)
	}
	return r, nil
}

// bodyLength is the length of key and value as a header says it, within bounds.
func bodyLength(header []byte) int {
	return int(min(binary.LittleEndian.Uint32(header[8:]), MaxKey+MaxValue))
}
