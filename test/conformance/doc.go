// Package conformance holds no code of the program: its tests show that what
// users complain about in other supervisors is not true of this one. Each is
// named after the complaint. What takes minutes runs with CONFORMANCE=1, and
// in a short form without.
package conformance
