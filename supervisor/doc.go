// Package supervisor keeps process roles alive by keeping hot standbys of
// them: it launches the workers of each role, ticks and evicts in the role's
// segment, runs hooks in order, and tells what happens as events.
//
// The election itself is not here. The workers elect among themselves in the
// segment (see coord/election), so that a failover neither waits for nor needs
// the supervisor.
//
// A Supervisor has no global state: several may run in one process. It
// installs no signal handler, changes neither working directory nor umask, is
// no subreaper unless Config.Subreaper says so, never reaps a process that it
// did not start, and never exits the program.
package supervisor
