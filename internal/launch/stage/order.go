//go:build unix

package stage

import "errors"

// Order is what a stage is told over the gate: a frame of a length and that
// many bytes, then the go byte. Strings keep every byte, for arguments and
// variables need not be UTF-8.
type Order struct {
	Path       string
	Args, Env  []string
	Dir        string
	Umask      int // -1 keeps
	Credential *Credential
	ListenPID  bool // add LISTEN_PID

	Nice        *int // nil keeps
	OOMScoreAdj *int // nil keeps
	NoNewPrivs  bool
	Limits      []Limit
}

// Credential is the user that the program runs as.
type Credential struct {
	UID, GID uint32
	Groups   []uint32 // supplementary; nil means none
}

// Limit is one resource limit.
type Limit struct {
	Resource   int // the system's number
	Soft, Hard uint64
	Text       string // for the report
	// Last: it is set right before exec, for the stage itself needs more.
	Last bool
}

// GoByte opens the gate when it follows an order, and in a report it says that
// exec is next.
const GoByte = 'g'

var errOrder = errors.New("damaged order")

// lengthSize is what the length of a frame takes.
const lengthSize = 8

// Frame is the order as it is written to the gate, without the go byte.
func (o *Order) Frame() []byte {
	b := make([]byte, lengthSize, 4096)
	b = appendString(b, o.Path)
	b = appendString(b, o.Dir)
	b = appendStrings(b, o.Args)
	b = appendStrings(b, o.Env)
	b = appendNumber(b, uint64(o.Umask))
	b = appendBool(b, o.ListenPID)
	b = appendOptional(b, o.Nice)
	b = appendOptional(b, o.OOMScoreAdj)
	b = appendBool(b, o.NoNewPrivs)
	b = appendNumber(b, uint64(len(o.Limits)))
	for _, l := range o.Limits {
		b = appendNumber(b, uint64(l.Resource))
		b = appendNumber(b, l.Soft)
		b = appendNumber(b, l.Hard)
		b = appendString(b, l.Text)
		b = appendBool(b, l.Last)
	}
	b = appendBool(b, o.Credential != nil)
	if c := o.Credential; c != nil {
		b = appendNumber(b, uint64(c.UID))
		b = appendNumber(b, uint64(c.GID))
		b = appendNumber(b, uint64(len(c.Groups)))
		for _, g := range c.Groups {
			b = appendNumber(b, uint64(g))
		}
	}
	appendNumber(b[:0], uint64(len(b)-lengthSize))
	return b
}

// decodeOrder reads what follows a frame's length.
func decodeOrder(b []byte) (*Order, error) {
	d := decoder{b: b}
	o := &Order{Path: d.string(), Dir: d.string(), Args: d.strings(), Env: d.strings(), Umask: int(d.number()), ListenPID: d.bool(),
		Nice: d.optional(), OOMScoreAdj: d.optional(), NoNewPrivs: d.bool()}
	for n := d.count(); n > 0; n-- {
		o.Limits = append(o.Limits, Limit{Resource: int(d.number()), Soft: d.number(), Hard: d.number(), Text: d.string(), Last: d.bool()})
	}
	if d.bool() {
		c := &Credential{UID: uint32(d.number()), GID: uint32(d.number())}
		for n := d.count(); n > 0; n-- {
			c.Groups = append(c.Groups, uint32(d.number()))
		}
		o.Credential = c
	}
	if d.bad || len(d.b) != 0 {
		return nil, errOrder
	}
	return o, nil
}
