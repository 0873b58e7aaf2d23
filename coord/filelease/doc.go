// Package filelease keeps leases and counters in files: one live process at a
// time for a key, across processes, restarts and, with care, machines that
// share a folder; for what must survive a reboot, or the loss of the runtime
// folder.
//
// For each key there are, in the folder "leases" below the store's root:
//
//	KEY.lease.json      who holds the lease; absent when nobody does
//	KEY.epoch           the counter: the last epoch that was handed out, in decimal
//	KEY.lock            empty; locked for the time of one call
//	KEY.live            locked by the holder for as long as it lives
//	KEY.lease.json.bad  a record that was damaged, and was replaced
//	KEY.epoch.bad       a counter that was
//	KEY.seen            since when a record is watched, see below
//
// KEY.lock, KEY.epoch and KEY.live are never deleted: a lock file that is made
// anew splits the lock over two files.
//
// A lease is taken from its holder only when that is provably dead (its lock on
// KEY.live can be taken on the kernel that it recorded, its process is gone by
// number and start time, or the machine has booted since), or when it has not
// renewed the lease for its TTL. What cannot be known counts as alive. Epochs
// rise by at least one with every change of holder, are on disk before the
// lease is, and survive its release.
//
// Time within one boot of a machine is CLOCK_BOOTTIME, which nobody can set and
// which goes on while the machine sleeps. A record of another machine or boot,
// one that lacks a field, and one that is unreadable are over only when the
// reader has seen them unchanged for a full TTL of its own clock. Wall time
// decides nothing.
//
// A holder that must not lose the lease by time calls [Lease.Keep], or is
// pinned (see [Claimant]), and asks [Store.Verify] before it acts.
//
// Not promised: that a holder which is stopped between Verify and its action
// does not act after its TTL. Use the epoch as a fencing token for that. Nor
// anything on network file systems, which are refused unless [AllowNetworkFS]:
// there, the clocks of two machines must run equally fast, the server must
// serve locks and renames in order, and a machine must see another's rename
// within the TTL. Nor any order among those who [Store.Wait].
//
// Locks are waited for by trying again, never by a blocked thread, and every
// wait ends with its context.
package filelease
