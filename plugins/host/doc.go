// Package host runs plugins for the supervisor: [New] turns the configuration
// of one plugin into [supervisor.NamedHooks], behind which a process is
// started, watched and restarted.
//
//	starting ─▶ running ◀─▶ leading        running: ready for hooks
//	    ▲   ╲      │           │           leading: OnPromote returned, OnDemote not yet
//	    │    ╲     ▼ died, hung, deaf ▼
//	    └── backoff / failed               failed: it needs a person, and is tried all the same
//	                          ... ─▶ stopped
//
// The process is started before any promotion, by go-plugin over gRPC on a
// Unix socket in the role's private folder, in a process group of its own. A
// hook that does not return by its deadline costs the process: the group is
// killed before the hook's call returns. A plugin that comes back asks the
// supervisor to repeat OnPromote, and is first told of every OnDemote that its
// predecessor did not live to answer.
//
// A plugin does not outlive this process by more than a moment: its standard
// input is a pipe whose other end only this process holds, and on Linux the
// kernel kills it when this process ends. What a plugin started is killed with
// it: its process group, and on Linux whoever carries its mark in the
// environment. If this process is killed, that is done by the next one.
//
// What a plugin prints is read by this package alone, one line at a time, and
// handed to HookEnv.Log; nothing that it writes is parsed by go-plugin except
// the one line of the handshake.
//
// Linux is the full platform. On other Unix systems the kernel's kill is
// missing, and the sha256 of a binary is checked on the file before it is
// started by name.
package host
