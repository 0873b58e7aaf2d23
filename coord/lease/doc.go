// Package lease is a lease with a payload for the processes of one machine:
// at most one of them owns it at a time, and only the owner changes the value
// that belongs to it. [OwnerLease] is a file that they all map; nobody serves
// it, and no process needs to be running for it to keep its state.
//
// [OwnerLease.Acquire] waits for the lease and returns a [Claim]. The classic
// verbs (TryAcquire, Release, WithLease ...) name a pid and make one attempt.
// [View] is for those who only read. [Handles] lists what this process has
// open, with counters; [Var] shows it through expvar. Who owns the lease is decided by package
// election; this package adds the value. Its rules follow.
//
// # Words
//
// The commit word C is (term, slot, cell, sequence): which cell holds the
// committed value, and which term may publish the next. There are 64 writer
// slots, each with two cells that hold one value each, and a head that says
// who holds the slot. O is the owner word, (pid, term).
//
// # Rules
//
// R1. The bytes of a T are the value, in every process: T holds no pointer,
// has a fixed size of at most 4096 bytes, and its size is in the header.
//
// R2. Only the holder of a slot stores into its two cells. A handle takes a
// slot at its first write: a free one, else one whose holder is proven gone
// (same boot, same pid namespace, pid and start time) by an identity that is
// whole, which its check word shows. Anything unknown is alive. Close frees it.
//
// R3. C changes by CAS alone, and its sequence rises by one with every
// publish, on over terms: it does not hold the same value twice within 2^32
// publishes of a term.
//
// R4. A claim puts its term into C after it has taken O, and only then reports
// success (adoption; election R6). From then on C names no other term until
// the next owner adopts.
//
// R5. A write fills, of the two cells of its slot, the one that C does not
// name, and no other memory.
//
// R6. A write publishes by one CAS, from a C that holds its own term to one
// that names the filled cell. If C holds another term, nothing is published.
//
// R7. A read loads C, copies the cell that it names, and loads C again. If the
// two are equal, the copy is the value that was committed all the while; else
// it starts over.
//
// R8. An owner's read loads O after the value. O never holds a value twice, so
// whoever is the owner then was it during the whole read.
//
// R9. Writes of one handle exclude each other; those of several handles of one
// owner do not need to: they fill different cells, and the CAS of R6 puts them
// in an order.
// A WithLease keeps its handle's cells for as long as its function runs: who
// writes through the same handle then has a slot beside it, like another handle.
//
// R10. The C under which a cell is chosen was loaded after the slot was taken,
// so it shows what the slot's last holder committed.
//
// R11. The term of a snapshot is the 25 bits in C, completed from O, which is
// loaded after C and never behind it.
//
// # Why a committed value is safe
//
// Damage to a committed value would be a store into the cell that C names. By
// R2 and R9 that cell has one writer at a time, and by R5 it fills the other
// one. That holds however long a writer is paused, and however many owners and
// writes pass meanwhile: the cell that it is in the middle of filling is its
// own, and nobody commits it but itself (R6). A rotation of shared cells, of
// any number of them, does not have this property: a paused writer's turn
// comes round again (naive_test.go shows it).
//
// An update would be lost if an earlier owner published after a later one had
// read. By R4 the later one had adopted before it read, so C holds a later
// term, and R6 refuses. If the earlier one publishes before the adoption, the
// adoption's CAS fails, is retried, and what was published is what the later
// owner reads.
//
// # Memory order
//
// O, C and the heads of slots are accessed with sync/atomic, which is
// sequentially consistent on every architecture. The cells are not:
//
//	access              amd64                     arm64 and others
//	fill a cell (R5)    plain stores              atomic stores
//	publish (R6)        LOCK CMPXCHG              CAS, acquire and release
//	C before the copy   MOV                       atomic load (LDAR)
//	copy a cell (R7)    plain loads               atomic loads (LDAR)
//	C after the copy    MOV                       atomic load (LDAR)
//
// Filling before publishing: amd64 makes stores visible in program order, and
// a locked instruction waits for all stores before it; on arm64 a store-release
// per word and a CAS with release keep the order. So whoever loads the new C
// sees the whole value.
//
// Copying between two equal loads of C: suppose a reader's copy contains a
// word of a later fill of the same cell. By R5 that fill began after C had
// come to name another cell, by a CAS that its writer had made or seen. The
// store follows that CAS in the order above, and the reader's second load of C
// follows its load of the word: amd64 lets no load pass another, an LDAR lets
// no later access pass. So the second load sees the CAS, or something later,
// and by R3 that differs from the first.
//
// The compiler keeps plain accesses where they are relative to atomic ones:
// these are ordered with all of memory in Go's compiler. The cells lie outside
// Go's heap, so the race detector does not look at them.
//
// # Promised
//
// A process that is killed at any instruction of a write leaves the last
// committed value, whole. One that is paused in the middle of a write and
// loses the lease changes nothing when it goes on, after any number of terms.
// Whoever reads sees one committed value, never a mixture, and never an older
// one than it saw before. An owner's successful write is the next owner's
// value. None of it needs a process to stay alive, a lock to be released, or a
// clock.
//
// # Not promised
//
// Reads are lock-free, not wait-free: an owner that publishes faster than a
// reader copies delays it. A reader or a writer that is paused during exactly
// a multiple of 2^32 publishes of one term takes the last one for the first.
// Two types of the same size cannot be told apart. A T with bool fields must
// not share a file with writers of other types: not every byte is a bool.
//
// Flush is for those who want the value to survive the machine; without it a
// file on a disk is written back whenever the kernel likes, and a machine that
// stops in between may leave a commit word without its cell. Put the file on a
// tmpfs, or create it anew after a boot.
//
// Owning the lease is no protection against a process that was paused: it
// finds out when it looks ([Claim.Check]), and what it sent before may arrive
// later. Hand the token to whatever can compare tokens.
//
// A handle unmaps its file when it is closed: a method that runs then, or
// later, faults. So does an access to a file that somebody truncates.
package lease
