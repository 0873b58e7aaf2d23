package role

import (
	"fmt"
	"strconv"
	"strings"
)

// TermBits is how many low bits of a [Token] hold the term. The rest, 22 bits,
// hold the generation of the role's segment.
const TermBits = 42

// MaxTerm is the last term that a segment grants; MaxGeneration is the last
// generation that fits in a token.
const (
	MaxTerm       = 1<<TermBits - 1
	MaxGeneration = 1<<(64-TermBits) - 1
)

// Token is the fencing token of one leadership: generation<<42 | term. For one
// role it rises strictly with every change of leader, also over restarts of
// the supervisor and reboots of the machine. Storage that refuses a lower
// token than it has seen is safe from every earlier leader.
//
// The zero Token belongs to no leadership. A Token is written as a decimal
// string in JSON, because a JSON number loses bits beyond 2^53, and as
// "generation.term" for people.
type Token uint64

// MakeToken joins a generation and a term. Bits that do not fit are cut off:
// callers hold both to [MaxGeneration] and [MaxTerm].
func MakeToken(generation, term uint64) Token {
	return Token(generation<<TermBits | term&MaxTerm)
}

// Generation is the incarnation of the segment that granted the token.
func (t Token) Generation() uint64 { return uint64(t) >> TermBits }

// Term is the number of the ownership within its segment.
func (t Token) Term() uint64 { return uint64(t) & MaxTerm }

// String is the form for people: "3.17" is term 17 of generation 3.
func (t Token) String() string {
	return strconv.FormatUint(t.Generation(), 10) + "." + strconv.FormatUint(t.Term(), 10)
}

// Decimal is the form for programs: the same digits that JSON carries.
func (t Token) Decimal() string { return strconv.FormatUint(uint64(t), 10) }

// ParseToken reads either form that the package writes: "13194139533329" or
// "3.17".
func ParseToken(s string) (Token, error) {
	generation, term, dotted := strings.Cut(s, ".")
	if !dotted {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read token %q: want a decimal number or generation.term", s)
		}
		return Token(n), nil
	}
	g, gerr := strconv.ParseUint(generation, 10, 64)
	t, terr := strconv.ParseUint(term, 10, 64)
	if gerr != nil || terr != nil || g > MaxGeneration || t > MaxTerm {
		return 0, fmt.Errorf("read token %q: want a decimal number or generation.term", s)
	}
	return MakeToken(g, t), nil
}

// MarshalJSON writes the token as a decimal string.
func (t Token) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, t.Decimal()), nil
}

// UnmarshalJSON reads a decimal string, or a bare number from a writer that
// did not know better.
func (t *Token) UnmarshalJSON(b []byte) error {
	s := string(b)
	if len(s) >= 2 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	n, err := ParseToken(s)
	if err != nil {
		return err
	}
	*t = n
	return nil
}
