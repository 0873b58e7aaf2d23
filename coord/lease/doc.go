// Package lease is a lease with a payload, shared by the processes of one
// machine: [OwnerLease].
package lease
