// Package filelease keeps leases and counters in files: for what must survive
// a reboot, or the loss of the runtime folder.
//
// For each key there are, in the folder "leases" below the store's root:
//
//	KEY.lease.json  who holds the lease; absent when nobody does
//	KEY.epoch       the counter: the last epoch that was handed out, in decimal
//	KEY.lock        empty; locked for the time of one call
//	KEY.live        empty; locked by the holder for as long as it lives
//
// KEY.lock, KEY.epoch and KEY.live are never deleted: a lock file that is made
// anew splits the lock over two files.
//
// A lease is taken from its holder only when that is provably dead: its lock on
// KEY.live can be taken on the kernel that it recorded, or its process is gone
// by number and start time, or the machine has booted since. What cannot be
// known counts as alive. Epochs rise by at least one with every change of
// holder, are on disk before the lease is, and survive its release.
//
// Not promised: anything on network file systems, which are refused unless
// AllowNetworkFS; and nothing is taken by time, so that a holder on another
// machine is never replaced.
//
// Locks are waited for by trying again, never by a blocked thread, and every
// wait ends with its context.
package filelease
