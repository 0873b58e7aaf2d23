// Package linear holds the linearizability tests of the lease: several
// processes use one segment while they are killed and stopped, each writes down
// what it called and what it was told, and a checker looks for an order of all
// these operations that a lease and a payload of the simplest kind could have
// gone through. Only tests are in here.
package linear
