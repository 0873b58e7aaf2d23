// Package store is a small key-value store whose only writer is the leader of
// a role: a map in memory, and journals on disk that every worker of the role
// can read.
//
// # Files
//
// All files of a store lie in one folder, on one machine:
//
//	journal-TOKEN-PART          records, in the order in which they count
//	snapshot-TOKEN-PART-OFFSET  the whole state as of one place in a journal
//	.*.tmp                      one of the two, not finished
//
// A leader never writes to a journal that another leader began. It opens its
// own, named by its token, and begins it with a manifest that says which older
// journals count and up to which length. The manifest is durable and in place
// before the first record. So the journal with the highest name decides alone
// what the state is, and a write that an earlier leader still makes, however
// late, lies beyond the length that counts, or in a journal that nobody lists.
//
// # What an acknowledgement means
//
// [Writer.Put] returns nil after the record is in the journal, fsync has
// returned, and a check of the leadership that began after the fsync has
// passed. A later leader begins to read the journals only after it is the
// active one, and from then on no check of an earlier leader passes: whatever
// was acknowledged lies within the length that the later leader counts.
// [Writer.Get] checks after it has read, so that it never answers with a value
// that a later leader has already replaced.
//
// # What is damage and what is not
//
// A record that was not written to its end, at the end of the newest journal,
// is what a crash leaves: it is not counted. Each record carries how much of
// its journal was durable when it was written; an unreadable record before
// that mark, or within a counted length, is [ErrCorrupt]: nothing is skipped,
// the store refuses to go on.
//
// # What is not promised
//
// The last records of the newest journal are not told apart from an unfinished
// write if the disk damages exactly them and nothing was written after them.
// If a write or an fsync fails, the writer gives up and acknowledges nothing
// any more, but what it wrote may still be found, and count, later: "not
// confirmed" means that a write may or may not have happened. (A full disk is
// the exception: the leader goes on reading, and goes on writing, in a new
// journal, once there is space.) Values live in memory, all of them.
//
// A leader that finds no space for its first journal serves reads without one.
// Until it has one, an earlier leader that was stopped while it opened its own
// (fence = "token"; other fencing proves it dead first) may still put that in
// place. If the new leader ends then, the next one counts as far as that journal
// says: a write that nobody acknowledged, but that was read, may be gone again.
package store
