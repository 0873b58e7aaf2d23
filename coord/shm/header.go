package shm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the part of a segment that nobody changes, with its checksum.
type header [offChecksum + 4]byte

// encodeHeader writes the immutable part of a segment.
func encodeHeader(mem []byte, p Params, meta Meta) {
	g := p.geometry()
	le := binary.LittleEndian
	le.PutUint64(mem[offMagic:], Magic)
	le.PutUint32(mem[offVersion:], LayoutVersion)
	le.PutUint32(mem[offHeaderSize:], headerSize)
	le.PutUint64(mem[offTotal:], uint64(g.total()))
	le.PutUint64(mem[offGeneration:], p.Generation)
	le.PutUint64(mem[offGrace:], p.Grace)
	le.PutUint64(mem[offTick:], uint64(p.Tick))
	le.PutUint64(mem[offProgress:], uint64(p.ProgressLimit))
	le.PutUint64(mem[offDrain:], uint64(p.DrainLimit))
	le.PutUint64(mem[offFence:], uint64(p.FenceLimit))
	le.PutUint64(mem[offRules:], uint64(p.Fence)|uint64(p.Proof)<<8|uint64(p.Preempt)<<16|uint64(p.Scheduling)<<24)
	le.PutUint32(mem[offSeats:], uint32(g.seats))
	le.PutUint32(mem[offWriters:], uint32(g.writers))
	le.PutUint32(mem[offCell:], uint32(g.cell))
	payload := uint32(noPayloadType)
	if p.PayloadType >= 0 {
		payload = uint32(p.PayloadType)
	}
	le.PutUint32(mem[offPayloadType:], payload)
	le.PutUint32(mem[offRing:], uint32(g.ring))
	le.PutUint64(mem[offBoot:], meta.Boot)
	le.PutUint64(mem[offCreated:], uint64(meta.CreatedAt.UnixNano()))
	le.PutUint32(mem[offChecksum:], crc32.Checksum(mem[:offChecksum], castagnoli))
}

// decodeHeader validates magic, version, checksum and ranges, in that order;
// it trusts nothing of what it reads.
func decodeHeader(b []byte, fileSize int64) (Params, geometry, Meta, error) {
	fail := func(err error) (Params, geometry, Meta, error) { return Params{}, geometry{}, Meta{}, err }
	le := binary.LittleEndian
	if len(b) < headerSize {
		return fail(fmt.Errorf("%d bytes, a header has %d: %w", len(b), headerSize, ErrSize))
	}
	if m := le.Uint64(b[offMagic:]); m != Magic {
		return fail(fmt.Errorf("begins with %#x: %w", m, ErrMagic))
	}
	if v := le.Uint32(b[offVersion:]); v != LayoutVersion {
		return fail(fmt.Errorf("version %d, this program knows %d: %w", v, LayoutVersion, ErrVersion))
	}
	if sum := crc32.Checksum(b[:offChecksum], castagnoli); sum != le.Uint32(b[offChecksum:]) {
		return fail(fmt.Errorf("checksum %#x, computed %#x: %w", le.Uint32(b[offChecksum:]), sum, ErrChecksum))
	}
	rules := le.Uint64(b[offRules:])
	p := Params{
		Generation: le.Uint64(b[offGeneration:]), Grace: le.Uint64(b[offGrace:]),
		Tick: time.Duration(le.Uint64(b[offTick:])), ProgressLimit: time.Duration(le.Uint64(b[offProgress:])),
		DrainLimit: time.Duration(le.Uint64(b[offDrain:])), FenceLimit: time.Duration(le.Uint64(b[offFence:])),
		Fence: uint8(rules), Proof: uint8(rules >> 8), Preempt: uint8(rules >> 16), Scheduling: uint8(rules >> 24),
		Seats: int(le.Uint32(b[offSeats:])), Writers: int(le.Uint32(b[offWriters:])), Cell: int(le.Uint32(b[offCell:])),
		PayloadType: -1, UID: -1, GID: -1,
	}
	if t := le.Uint32(b[offPayloadType:]); t != noPayloadType {
		p.PayloadType = int(t)
	}
	g := geometry{seats: p.Seats, writers: p.Writers, ring: int(le.Uint32(b[offRing:])), cell: p.Cell}
	if !g.valid() || le.Uint32(b[offHeaderSize:]) != headerSize {
		return fail(fmt.Errorf("impossible geometry: %w", ErrChecksum))
	}
	if err := p.normalize(); err != nil {
		return fail(fmt.Errorf("%w: %w", err, ErrChecksum))
	}
	if total := le.Uint64(b[offTotal:]); total != uint64(g.total()) || int64(total) != fileSize {
		return fail(fmt.Errorf("file has %d bytes, its header says %d: %w", fileSize, total, ErrSize))
	}
	meta := Meta{Boot: le.Uint64(b[offBoot:]), CreatedAt: time.Unix(0, int64(le.Uint64(b[offCreated:])))}
	return p, g, meta, nil
}
