// Package plugins is what the author of a standbyd plugin imports. A plugin is
// a program of its own that the supervisor starts beside a role and tells of
// the role's leadership:
//
//	func main() {
//		duty := &plugins.Duty{}
//		duty.Start = func(ctx context.Context, t plugins.Transition) error {
//			log.Printf("%s leads with token %s", t.Worker, t.Token)
//			<-ctx.Done()
//			return nil
//		}
//		plugins.Serve(duty)
//	}
//
// What a plugin is told, in this order:
//
//	Describe ─▶ Configure ─▶ ( PrePromote? ─▶ OnPromote(T) ─▶ OnLeaderChange(T)? ─▶ OnDemote(T) )* ─▶ Stop
//
// Each moment is a small interface of its own; a plugin implements those that
// it wants and Serve finds them. All calls come one at a time. Each has a
// deadline (5 seconds unless the role says otherwise); a plugin that has not
// answered by then is killed with its process group and started again. Every
// call may be repeated: Transition.Token is the key that makes it idempotent.
// OnDemote(T) of every plugin has returned, or its process is dead, before any
// OnPromote of a later token starts.
//
// The process starts before any promotion and ends with its supervisor, also
// when that is killed: importing this package in a program that standbyd
// started turns standard input into the lifeline that says so, and moves
// standard output, which carries the handshake, to standard error. What the
// program prints goes to the role's plugin log, line by line.
//
// What is not promised: a hook may run after the leadership it tells of has
// already ended, and a plugin that was paused between a check and the side
// effect behind it may still do it. Storage that refuses lower tokens than it
// has seen closes that gap; pass Transition.Token on to it.
package plugins
