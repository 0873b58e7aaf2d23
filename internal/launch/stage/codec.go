//go:build unix

package stage

// Numbers are eight bytes, the highest first; what varies in length is
// preceded by it.

func appendNumber(b []byte, n uint64) []byte {
	return append(b, byte(n>>56), byte(n>>48), byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendString(b []byte, s string) []byte {
	return append(appendNumber(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = appendNumber(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendOptional(b []byte, n *int) []byte {
	b = appendBool(b, n != nil)
	if n != nil {
		b = appendNumber(b, uint64(*n))
	}
	return b
}

// decoder takes values from the front of b. After a fault it is bad, and
// everything else is zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.b, d.bad = nil, true
		return nil
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) number() (n uint64) {
	for _, c := range d.take(8) {
		n = n<<8 | uint64(c)
	}
	return n
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return len(b) == 1 && b[0] == 1
}

// count is the length of something that has at least one byte an element.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return string(d.take(d.count())) }

func (d *decoder) strings() (list []string) {
	for n := d.count(); n > 0; n-- {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) optional() *int {
	if !d.bool() {
		return nil
	}
	n := int(d.number())
	return &n
}
