// Package supervisor keeps process roles alive by keeping hot standbys of
// them: it launches the workers of each role, ticks and evicts in the role's
// segment, runs hooks in order, and tells what happens as events.
//
// The election itself is not here. The workers elect among themselves in the
// segment (see coord/election), so that a failover neither waits for nor needs
// the supervisor. What the supervisor has to say about it stands in the
// segment's control word.
//
// A Supervisor has no global state: several may run in one process. It
// installs no signal handler, changes neither working directory nor umask nor its
// cgroup unless Config.OwnCgroup says so, is
// no subreaper unless Config.Subreaper says so, never reaps a process that it
// did not start (a subreaper reaps the orphans that it was given), and never
// exits the program.
//
// # How it is made
//
// One goroutine owns one role (role.go). Everything reaches it as an input
// (messages.go, all of them); a pure step (step.go, step_worker.go,
// step_role.go, observe.go) turns state and input into the next state and
// effects (effects.go, all of them); the loop performs those (perform.go,
// life.go, segment.go, listeners.go) and feeds back what comes of them. The
// two tables of table.go have an answer for everything that can happen in
// every state:
//
//	role     starting ─▶ led ◀─▶ vacant ─▶ held        (any of them)
//	         closing ─▶ stopping ─▶ ending ─▶ stopped   after the end of Run's context
//	         renewing ─▶ starting                       after the segment was lost
//
//	worker   starting ─▶ standby ◀─▶ leader ─▶ draining
//	         (any with a process) ─▶ ended ─▶ backoff | failed ─▶ starting
//	         (any) ─▶ stopping ─▶ ended ─▶ stopped
//
// Hooks are called by one goroutine per role, in order (hookqueue.go). What an
// earlier supervisor left at work is taken over (adopt.go).
//
// # What it does not promise
//
// Two leaders are prevented by the members' fencing, not by the supervisor: a
// role stays as safe, and fails over as fast, while no supervisor runs. But
// nobody restarts what dies then, and a role whose hooks have a PrePromote
// waits at the gate until the next supervisor answers. Hooks are told at least
// once, and learn of a lost leadership when the supervisor sees it, which is
// no fence: what they write is guarded by the token.
package supervisor
