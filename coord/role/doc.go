// Package role is the vocabulary that every other package shares: the fencing
// [Token], the [Reason] of a change of leadership and the [Transition] that
// hooks and plugins are told. It imports the standard library only and holds
// no behaviour beyond formatting.
package role
