package store

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// The layout is on disk: a change that this test notices needs a new magic.
func TestRecordLayout(t *testing.T) {
	got := appendRecord(nil, 0x0102030405060708, 99, record{op: opPut, token: 0x1122334455667788, seq: 7, durable: 1000, key: "key", value: []byte("value")})
	const want = "6b765231" + "724dbe51" + "08000000" + "0300" + "01" + "00" + "8877665544332211" + "0700000000000000" + "e803000000000000" + "6b6579" + "76616c7565"
	if hex.EncodeToString(got) != want {
		t.Errorf("record is\n%x, want\n%s", got, want)
	}
}

func FuzzParseRecord(f *testing.F) {
	good := appendRecord(nil, 5, 64, record{op: opPut, token: 3, seq: 1, durable: 64, key: "k", value: []byte("v")})
	f.Add(good, uint64(5), int64(64))
	f.Add(good, uint64(6), int64(64))
	f.Add(good[:len(good)-1], uint64(5), int64(64))
	f.Add([]byte(recordMagic+"\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\x01\x00aaaaaaaaaaaaaaaaaaaaaaaa"), uint64(0), int64(0))
	f.Add(bytes.Repeat([]byte{0}, 64), uint64(0), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, salt uint64, offset int64) {
		r, err := parseRecord(b, salt, offset)
		if err != nil {
			if !errors.Is(err, errShort) && !errors.Is(err, errBad) {
				t.Fatalf("unknown error %v", err)
			}
			return
		}
		if r.size() > int64(len(b)) || len(r.key) > MaxKey || len(r.value) > MaxValue {
			t.Fatalf("record of %d bytes out of %d", r.size(), len(b))
		}
		if again := appendRecord(nil, salt, offset, r); !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("written again it is %x, was %x", again, b[:len(again)])
		}
	})
}
