// Package election decides, among processes that share a segment, who owns its
// lease, and when an owner may act as the leader.
//
// # Words
//
// The owner word O is (pid, term). The heartbeat word of a term's parity,
// H[term&1], is (tag, sealed, epoch). The epoch is a tick counter without wall
// clock. The active word A is (pid, term) of whoever may act. The commit word
// C says which term may publish the payload.
//
// # Rules
//
// R1. O changes only by a CAS of the whole word, and never holds a value that
// it held before: (p,T) is followed by (0,T) or by (q,T+1). So a CAS that
// succeeds proves that nothing happened since the load.
//
// R2. A claim loads the epoch before O (C1, C2), and H after both. A claimant
// that sleeps on the way finds the owner fresher than it is, never staler, and
// never makes a later owner's heartbeat look newer than that owner's birth.
//
// R3. A claim moves H of the coming term to (T+1, its epoch) before it takes O
// (C6, C9): from the moment a term is owned, its heartbeat is as fresh as the
// epoch that its claim loaded. H moves only from tag T-1 to T+1; tags are
// compared for equality only, so that their wrap needs no order.
//
// R4. A claim by staleness seals exactly the heartbeat that it judged (C8). An
// owner that beat since then makes the CAS fail; one that is sealed cannot
// beat any more and learns that it lost.
//
// R5. A proof of death begins after O was loaded, and its result is used only
// in a CAS from that value (C5, C9; Evict).
//
// R6. A claim loads C before it takes O and afterwards puts its own term into
// it (C7, C10); it reports success only then. A publish of an earlier term
// fails from then on.
//
// R7. A beat is a CAS forward of H in the beater's own term while O names it;
// in an epoch that was beaten already it stores nothing.
//
// R8. Whoever A names is the only one that can be between publishing and
// stopping. A changes only by CAS, only after the one it names has retired or
// is proven dead, and only to a later term (P1 to P4 in [Election.Promote]).
//
// R9. Everybody may tick. A tick loads the epoch first and reads the clock last
// (T1 to T5 in [Election.Tick]), so that wherever tickers are stopped, of three
// epochs in a row the last begins a whole tick after the first. A tick after a
// gap longer than grace ticks first forgives the owner, so that a pause of the
// whole machine is no failover.
//
// R10. The control word is the supervisor's alone. A claim obeys it, and leads
// only after it has looked at closed and held once more.
//
// R11. A hint that an owner is about to end (Attempt.Dying) proves nothing: an
// execve gives it, too. It makes a claimant look for the proof at once. Only
// where the fence is the token is it reason enough, and then the claim is one by
// staleness: it seals exactly the heartbeat that it judged (C8). A hint is then
// like the judgement of a claimant whose grace is 0, and R1 to R4 ask for no
// grace: a term is granted once, and an owner that lives after all learns at
// its next Check or beat that it lost, and its token is refused.
//
// All words are accessed with sync/atomic, which Go makes sequentially
// consistent on every architecture; no rule needs less and none assumes more.
// The ring is the exception: it is written with plain stores and nothing
// depends on it.
//
// # Promised
//
// A term is granted once. An owner that beat within grace epochs is never
// taken from by staleness; with a grace of 3 or more, that includes one that
// beats once in each tick, wherever others are stopped. Terms only rise. Two
// claimants that both follow Promote never lead at the same time.
//
// docs/protocol.md ties each rule to the models in model/ that were checked,
// to the walks over all orders of steps, and to the mistakes that both find.
//
// # Not promised
//
// An owner that was taken from does not know it before it looks: what it
// began before its last [Election.Check] may still be under way, unless the
// segment's fence made sure that it is dead. An owner that hangs unobserved
// for 2^30 epochs reads as fresh. The classic verbs take the caller's word for
// its pid.
package election
