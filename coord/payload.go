package coord

import (
	"fmt"

	"github.com/standbyd/standbyd/coord/lease"
)

// Payload is the value in the role's segment as anyone may read it, leading or
// not: a few bytes that each leader hands on to the next. All workers of a
// role must agree on T; in a role's segment it begins as the zero T. The error
// is lease.ErrPayload if T holds pointers or does not fit.
func Payload[T any](m *Member) (*lease.View[T], error) {
	v, err := lease.ViewOf[T](m.payloadHandle())
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", m.name, err)
	}
	return v, nil
}

// ClaimOf is the same value as the leader reads and writes it. What it wrote
// is whole, survives its death, and cannot be changed by it any more once
// another has claimed the lease. Releasing the claim is resigning the
// leadership.
func ClaimOf[T any](l *Leadership) (*lease.Claim[T], error) {
	c, err := lease.ClaimOf[T](l.m.payloadHandle(), lease.Held{
		PID: l.m.pid, Term: l.term, Done: l.ctx.Done(), Release: l.Resign,
	})
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", l.m.name, err)
	}
	return c, nil
}

// payloadHandle is the member's one access to the payload: its writes exclude
// each other, and take one writer slot together.
func (m *Member) payloadHandle() *lease.Payload {
	m.payloadOnce.Do(func() { m.payload = lease.PayloadOf(m.mapped.seg) })
	return m.payload
}
