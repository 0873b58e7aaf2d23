// Package conformance holds the complaints that users of process supervisors
// have had for years, one test for each, against the real programs. Their names
// begin with the complaint's number: TestA01_..., as in docs/conformance.md.
//
// The quick ones run with every other test. Those that take minutes, and the
// long form of the others, run with CONFORMANCE=1, as `make conformance` does.
package conformance
