// Package coord is what a worker imports: it joins the role that its process
// was launched for, waits as a hot standby, and leads when it is its turn.
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//		defer stop()
//		if err := coord.Run(ctx, lead); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	func lead(ctx context.Context, l *coord.Leadership) error {
//		for ctx.Err() == nil {
//			// l.Check() before each side effect
//		}
//		return nil
//	}
//
// [Run] is all that most workers need. [Join], [Member.Campaign] and
// [Leadership.Resign] are the same in pieces; [JoinFile] does without a
// supervisor. The package installs no signal handler.
//
// # What is promised
//
//   - lead runs in at most one process of the role at a time, under the
//     fencing that the segment's header names: with "process" and "tree" the
//     predecessor is proven dead, or its lead has returned, before the next
//     one starts. With "token" (the default of JoinFile) a predecessor that
//     was paused may wake beside its successor: [Leadership.Check] fails there
//     from the takeover on, and storage that refuses a lower
//     [Leadership.Token] refuses its writes.
//   - The context of lead ends, with a cause, when leadership is lost or
//     wanted back. The member keeps beating while lead drains, and the lease
//     is released only after lead has returned. A lead that does not return
//     within the drain limit of the segment's header costs the process: it
//     exits with status 75 ([ExitStatus]).
//   - A member that lost contends again, always.
//   - A panic in lead ends the process.
//
// # What is not promised
//
//   - Beats speak for the process, not for the work in it: a lead that waits
//     for a mutex for ever goes on leading, unless [Member.Pulse] or
//     [WithCheck] is used; then no progress for the segment's progress limit
//     counts as a hang.
//   - Nothing is known here of other hosts. A segment is shared by the
//     processes of one machine.
//   - Timing follows the segment's header (tick, grace, limits), never the
//     worker's own settings.
//
// # Goroutines of a member
//
//   - beat: one pass per epoch of the segment, at absolute deadlines, and one
//     per event: ticks the segment if nobody else has, records the seat's beat
//     and, as owner, the lease's, checks the segment and judges the leadership
//     (lost, resignation wanted, progress, drain limit); it also notices that
//     the supervisor was replaced. It owns the decisions to cancel a leadership
//     and to exit, and passes news on. In between it sleeps on the seat's event
//     word, which others raise when the owner or the control word changed. A
//     standby that others go before makes only a few passes in each grace, as
//     long as those others tick. It keeps one thread for itself, by whose end
//     the other members notice that this process dies; it runs no code of the
//     worker.
//   - alarm: makes the passes of the epochs in its place where the tick is 50 ms
//     or longer and the scheduling is normal, woken by the runtime's poller, at
//     the half of the price. One pass at a time.
//   - notify: owns what is sent to the supervisor's socket, and wakes the other
//     members a moment after a promotion. Fed by requests of one bit each.
//   - check: runs the function of [WithCheck] while the member leads.
//   - observe: calls OnNewLeader of [WithCallbacks], if there is one.
//   - lead: Run's, one at a time. It campaigns, then runs the worker's function,
//     and gives the lease back when it has returned, unless callbacks are still
//     to be told.
//
// A campaign runs on the goroutine of the caller of Campaign, or on Run's lead,
// so that no other has to be woken before the work begins. It keeps its thread
// until it leads. Once, when there is nothing else to do, it rehearses a
// takeover in private memory, so that the real one runs no code for the first
// time. It sleeps on the seat's event word and, if it is the first or the second
// candidate, on its robust word in the owner's row, and holds a handle on the
// owner's process from when it first saw it own; one goroutine sleeps in the
// runtime's poller for it. All are gone when [Member.Close] has returned.
package coord
