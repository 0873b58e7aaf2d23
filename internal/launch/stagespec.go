//go:build unix

package launch

import (
	"encoding/binary"
	"errors"
)

// order is what the stage is told over the gate: a frame of four bytes of
// length and that many of text, then the go byte. Strings keep every byte,
// for arguments and variables need not be UTF-8.
type order struct {
	Path       string
	Args, Env  []string
	Dir        string
	Umask      int // -1 keeps
	Credential *Credential
	ListenPID  bool // add LISTEN_PID
	Settings   Settings
}

const goByte = 'g'

var errOrder = errors.New("damaged order")

func (o *order) encode() []byte {
	b := make([]byte, 4, 4096)
	b = appendStrings(b, []string{o.Path, o.Dir})
	b = appendStrings(b, o.Args)
	b = appendStrings(b, o.Env)
	b = binary.AppendVarint(b, int64(o.Umask))
	b = appendBool(b, o.ListenPID)
	b = o.Settings.append(b)
	b = appendBool(b, o.Credential != nil)
	if c := o.Credential; c != nil {
		b = binary.AppendUvarint(b, uint64(c.UID))
		b = binary.AppendUvarint(b, uint64(c.GID))
		b = binary.AppendUvarint(b, uint64(len(c.Groups)))
		for _, g := range c.Groups {
			b = binary.AppendUvarint(b, uint64(g))
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// decodeOrder reads the text of a frame.
func decodeOrder(b []byte) (*order, error) {
	d := decoder{b: b}
	names := d.strings()
	o := &order{Args: d.strings(), Env: d.strings(), Umask: int(d.varint()), ListenPID: d.uvarint() == 1, Settings: d.settings()}
	if d.uvarint() == 1 {
		c := &Credential{UID: uint32(d.uvarint()), GID: uint32(d.uvarint())}
		for n := d.count(); n > 0; n-- {
			c.Groups = append(c.Groups, uint32(d.uvarint()))
		}
		o.Credential = c
	}
	if d.bad || len(d.b) != 0 || len(names) != 2 {
		return nil, errOrder
	}
	o.Path, o.Dir = names[0], names[1]
	return o, nil
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads the length of something that has at least one byte an element.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return 0
	}
	return int(n)
}

func (d *decoder) strings() []string {
	var list []string
	for n := d.count(); n > 0; n-- {
		l := d.count()
		list = append(list, string(d.b[:l]))
		d.b = d.b[l:]
	}
	return list
}
