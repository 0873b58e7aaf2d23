package shm

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func newSegment(t *testing.T) *Segment {
	t.Helper()
	s, err := Create(filepath.Join(t.TempDir(), "seg"), DefaultParams(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestWhatCreateWritesOpenReads(t *testing.T) {
	p := DefaultParams()
	p.Generation, p.Grace, p.Fence, p.Proof, p.Preempt, p.Cell, p.PayloadType = 7, 10, FenceProcess, ProofExiting, PreemptPriority, 100, 97
	path := filepath.Join(t.TempDir(), "seg")
	a, err := Create(path, p, func(s *Segment) error { s.Epoch.Store(42); return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if a.Params() != b.Params() {
		t.Errorf("created %+v, opened %+v", a.Params(), b.Params())
	}
	if b.Epoch.Load() != 42 {
		t.Errorf("epoch %d", b.Epoch.Load())
	}
	a.Seats[63].InFlight.Store(5)
	a.Writers[63].Cells[1][12].Store(6)
	a.Ring(1000).EndedAt.Store(7)
	if b.Seats[63].InFlight.Load() != 5 || b.Writers[63].Cells[1][12].Load() != 6 || b.Ring(1000).EndedAt.Load() != 7 {
		t.Error("a second mapping does not show the first one's stores")
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestCreateLeavesAnExistingPathAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seg")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, DefaultParams(), nil); !errors.Is(err, ErrExists) {
		t.Fatalf("got %v, want ErrExists", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "mine" {
		t.Fatalf("file now holds %q", b)
	}
}

func TestOpenRefusesWhatIsNoSegment(t *testing.T) {
	good := newSegment(t)
	whole, err := os.ReadFile(good.Path())
	if err != nil {
		t.Fatal(err)
	}
	edit := func(off int, v byte) []byte {
		b := append([]byte(nil), whole...)
		b[off] ^= v
		return b
	}
	random := make([]byte, 8192)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	version := append([]byte(nil), whole...)
	binary.LittleEndian.PutUint32(version[offVersion:], 99)
	cases := []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, ErrSize},
		{"shorter than a header", whole[:100], ErrSize},
		{"cut in the middle", whole[:len(whole)/2], ErrSize},
		{"one byte short", whole[:len(whole)-1], ErrSize},
		{"longer", append(append([]byte(nil), whole...), 0), ErrSize},
		{"random", random, ErrMagic},
		{"text", append([]byte("hello"), random...), ErrMagic},
		{"a later version", version, ErrVersion},
		{"a flipped bit in grace", edit(offGrace, 1), ErrChecksum},
		{"a flipped bit in seats", edit(offSeats+1, 1), ErrChecksum},
	}
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "seg")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(path); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			if s != nil {
				s.Close()
			}
		}
		if b, _ := os.ReadFile(path); string(b) != string(c.data) {
			t.Errorf("%s: the file was changed", c.name)
		}
	}
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good.Path(), link); err == nil {
		if _, err := Open(link); !errors.Is(err, ErrNotRegular) {
			t.Errorf("a link: %v", err)
		}
	}
}

func TestCheckFindsARemovedOrTruncatedFile(t *testing.T) {
	s := newSegment(t)
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.Path()); err != nil {
		t.Skip(err)
	}
	if err := s.Check(); !errors.Is(err, ErrGone) {
		t.Fatalf("removed: %v", err)
	}
}

func TestCheckFindsAnOverwrittenHeader(t *testing.T) {
	s := newSegment(t)
	s.Owner.Store(PackOwner(100, 7)) // the words below the header are free to change
	opened, err := Open(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := opened.Check(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.file.WriteAt(make([]byte, s.m.Len()), 0); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Segment{s, opened} {
		if err := s.Check(); !errors.Is(err, ErrGone) {
			t.Errorf("overwritten: %v", err)
		}
	}
}

func TestWordsKeepWhatIsPacked(t *testing.T) {
	for range 1000 {
		pid, term := rand.Uint32N(MaxPID+1), rand.Uint64N(MaxTerm+1)
		if p, tt := UnpackOwner(PackOwner(pid, term)); p != pid || tt != term {
			t.Fatalf("owner (%d,%d) came back as (%d,%d)", pid, term, p, tt)
		}
		h := Heartbeat{Tag: rand.Uint32(), Sealed: rand.N(2) == 0, Epoch: rand.Uint32N(1 << 31)}
		if g := UnpackHeartbeat(PackHeartbeat(h.Tag, uint64(h.Epoch), h.Sealed)); g != h {
			t.Fatalf("heartbeat %+v came back as %+v", h, g)
		}
		c := Commit{Term: rand.Uint32N(1 << 25), Slot: rand.Uint32N(64), Cell: rand.Uint32N(2), Seq: rand.Uint32()}
		if g := UnpackCommit(c.Pack()); g != c {
			t.Fatalf("commit %+v came back as %+v", c, g)
		}
	}
}

func TestBehindIsASignedDifferenceOverTheWrap(t *testing.T) {
	for _, c := range []struct {
		now  uint64
		beat uint32
		want int64
	}{
		{10, 10, 0}, {13, 10, 3}, {10, 13, -3}, {1<<31 + 2, 1<<31 - 1, 3}, {1<<31 - 1, 2, -3}, {1 << 40, 0, 0}, {1<<40 + 5, 1<<31 - 1, 6},
	} {
		if got := Behind(c.now, c.beat); got != c.want {
			t.Errorf("Behind(%d, %d) = %d, want %d", c.now, c.beat, got, c.want)
		}
	}
}

func TestStoredWordsLoadBack(t *testing.T) {
	s := newSegment(t)
	cell := s.Writers[3].Cells[1]
	for n := range 49 {
		src := make([]byte, n)
		for i := range src {
			src[i] = byte(rand.Uint32())
		}
		for i := range cell {
			cell[i].Store(^uint64(0))
		}
		StoreWords(cell, src)
		dst := make([]byte, n)
		LoadWords(dst, cell)
		if string(dst) != string(src) {
			t.Fatalf("%d bytes: stored %x, loaded %x", n, src, dst)
		}
	}
}

func TestParamsOutOfRangeAreErrors(t *testing.T) {
	for name, change := range map[string]func(*Params){
		"grace":      func(p *Params) { p.Grace = 0 },
		"tick":       func(p *Params) { p.Tick = 0 },
		"generation": func(p *Params) { p.Generation = 1 << 22 },
		"seats":      func(p *Params) { p.Seats = MaxSeats + 1 },
		"writers":    func(p *Params) { p.Writers = -1 },
		"cell":       func(p *Params) { p.Cell = MaxCell + 1 },
		"payload":    func(p *Params) { p.PayloadType = 49 },
		"fence":      func(p *Params) { p.Fence = 9 },
	} {
		p := DefaultParams()
		change(&p)
		path := filepath.Join(t.TempDir(), "seg")
		if _, err := Create(path, p, nil); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file was made", name)
		}
	}
}

// FuzzOpen: whatever the bytes, Open answers with an error or a segment, and
// never faults.
func FuzzOpen(f *testing.F) {
	p := DefaultParams()
	p.Seats, p.Writers, p.Cell = 1, 1, 8
	seg, err := Create(filepath.Join(f.TempDir(), "seg"), p, nil)
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(seg.Path())
	seg.Close()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:256])
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "seg")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(path); err == nil {
			s.Close()
		}
	})
}
