package lease

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

type nested struct {
	A [3]struct {
		Name string
	}
}

func refuses[T any](t *testing.T, mentions string) {
	t.Helper()
	var zero T
	path := t.TempDir() + "/lease"
	l, err := Create(path, zero)
	wantErr(t, err, ErrPayload)
	if l != nil || !strings.Contains(err.Error(), mentions) {
		t.Errorf("%T: %v; want it to mention %q", zero, err, mentions)
	}
	// Open looks at T before it looks at the file.
	_, err = Open[T](path)
	wantErr(t, err, ErrPayload)
}

func TestR1PayloadsWithPointersAreRefused(t *testing.T) {
	refuses[*int](t, "ptr")
	refuses[string](t, "string")
	refuses[[]byte](t, "slice")
	refuses[map[int]int](t, "map")
	refuses[chan int](t, "chan")
	refuses[func()](t, "func")
	refuses[any](t, "interface")
	refuses[error](t, "interface")
	refuses[uintptr](t, "address")
	refuses[time.Time](t, "loc")
	refuses[[2]*int](t, "[]: ")
	refuses[nested](t, "A[].Name: a string")
	refuses[struct{ P *nested }](t, "P: ")
}

func TestPayloadsThatAreTooLargeAreRefused(t *testing.T) {
	refuses[[shm.MaxCell + 1]byte](t, "4097 bytes, at most 4096")
}

func accepts[T comparable](t *testing.T, initial, next T) {
	t.Helper()
	path := t.TempDir() + "/lease"
	l, err := Create(path, initial)
	if err != nil {
		t.Fatalf("%T: %v", initial, err)
	}
	defer l.Close()
	if v, _ := l.Snapshot(); v != initial {
		t.Fatalf("%T: initial value is %v", initial, v)
	}
	must(l.TryAcquire(low, 3))(t)
	for _, v := range []T{next, initial, next} {
		if err := l.WriteAsOwner(low, v); err != nil {
			t.Fatalf("%T: %v", initial, err)
		}
		if got := must(l.ReadAsOwner(low))(t); got != v {
			t.Fatalf("%T: wrote %v, read %v", initial, v, got)
		}
	}
	other := reopen(t, l)
	if v, term := other.Snapshot(); v != next || term != 1 {
		t.Fatalf("%T: second handle sees %v", initial, v)
	}
}

func TestStructPayloadsOfEverySize(t *testing.T) {
	accepts(t, struct{}{}, struct{}{})
	accepts(t, [0]int{}, [0]int{})
	accepts(t, false, true)
	accepts(t, uint8(1), uint8(2))
	accepts(t, [3]byte{1, 2, 3}, [3]byte{4, 5, 6})
	accepts(t, 1.5, -2.5)
	accepts(t, 7, -7)
	accepts(t, [9]byte{8: 1}, [9]byte{7: 1})
	accepts(t, struct {
		A byte
		B complex128
		C [3]int16
		_ [0]uint64
		D bool
	}{1, 2, [3]int16{3}, [0]uint64{}, false}, struct {
		A byte
		B complex128
		C [3]int16
		_ [0]uint64
		D bool
	}{4, 5i, [3]int16{2: 9}, [0]uint64{}, true})
	accepts(t, rec(1), rec(2))
	accepts(t, [47]byte{46: 1}, [47]byte{46: 2})
	accepts(t, [49]byte{48: 1}, [49]byte{48: 2})
	accepts(t, [shm.MaxCell]byte{4095: 1}, [shm.MaxCell]byte{0: 1})
	accepts(t, pageOf(1, 2), pageOf(3, 4))
	if reflect.TypeFor[page]().Size() != shm.MaxCell {
		t.Fatal("page is not the largest payload")
	}
}

func TestOpenWithAnotherSizeIsRefused(t *testing.T) {
	l := newLease(t)
	_, err := Open[uint64](l.Path())
	wantErr(t, err, ErrPayload)
	_, err = Open[page](l.Path())
	wantErr(t, err, ErrPayload)
	_, err = OpenOrCreate(l.Path(), uint32(1))
	wantErr(t, err, ErrPayload)
	// Another type of the same size cannot be told apart.
	if _, err := Open[[48]byte](l.Path()); err != nil {
		t.Fatal(err)
	}
}

func TestARolesSegmentTakesAnyTypeThatFits(t *testing.T) {
	p := shm.DefaultParams() // records no payload type
	p.Cell = 64
	seg := must(shm.Create(t.TempDir()+"/role", p, nil))(t)
	defer seg.Close()
	v := must(Attach[record](seg))(t)
	if r, term := v.Snapshot(); r != (record{}) || term != 0 {
		t.Errorf("begins with %v of term %d", r, term)
	}
	must(Attach[[64]byte](seg))(t)
	_, err := Attach[[65]byte](seg)
	wantErr(t, err, ErrPayload)
	_, err = Attach[string](seg)
	wantErr(t, err, ErrPayload)

	p.Cell = 0
	bare := must(shm.Create(t.TempDir()+"/bare", p, nil))(t)
	defer bare.Close()
	_, err = Attach[record](bare)
	wantErr(t, err, ErrPayload)
	_, err = Attach[struct{}](bare)
	wantErr(t, err, ErrPayload)
}
