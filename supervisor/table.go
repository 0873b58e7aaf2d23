package supervisor

// The whole behaviour on one screen. A row is what a worker or a role is
// doing, a column is what can happen to it, a cell is the verb that decides.
// Rows and columns are counted by their enums, so that a new one without an
// answer does not compile or fails the test of every cell.

// word is a column of workerTable.
type word int

const (
	wLaunched   word = iota // a process exists
	wUnlaunched             // none could be made
	wTurn                   // it may have one now
	wWarming                // the segment: not ready
	wStandby                // the segment: ready, A names another
	wLeader                 // the segment: A and O name it
	wDraining               // the segment: A names it, and it has to stop
	wEnded                  // the process is dead
	wExited                 // and buried
	wDue                    // the deadline of its lot has come
	wSick                   // its health probe has failed too often
	wSilent                 // it has not kept its watchdog
	wStart                  // it is wanted
	wStop                   // it is not wanted any more
	wKill                   // it has to end now
	wordCount
)

var wordNames = [wordCount]string{"launched", "unlaunched", "turn", "warming", "standby", "leader", "draining", "ended", "exited", "due", "sick", "silent", "start", "stop", "kill"}

type workerCell func(*turn, int)

// workerTable is an array of functions of the package, filled by init because
// the functions lead back to the table.
var workerTable [lotCount][wordCount]workerCell

func init() {
	workerTable = [lotCount][wordCount]workerCell{
		//            launched    unlaunched    turn          warming        standby        leader        draining        ended exited  due        sick    silent  start      stop       kill
		lotStopped:  {disown, ignore, yield, ignore, ignore, ignore, ignore, ignore, ignore, ignore, ignore, ignore, launchNow, ignore, ignore},
		lotStarting: {ownProcess, restartLater, yield, ignore, becomeStandby, becomeLeader, becomeDraining, bury, ignore, giveUpStart, ignore, killSilent, want, beginStop, killNow},
		lotStandby:  {disown, ignore, yield, becomeWarming, ignore, becomeLeader, becomeDraining, bury, ignore, ignore, replaceSick, killSilent, want, beginStop, killNow},
		lotLeader:   {disown, ignore, yield, becomeWarming, becomeStandby, keepLeader, becomeDraining, bury, ignore, ignore, deposeSick, killSilent, want, beginStop, killNow},
		lotDraining: {disown, ignore, yield, becomeWarming, becomeStandby, becomeLeader, ignore, bury, ignore, ignore, ignore, killSilent, want, beginStop, killNow},
		lotBackoff:  {disown, ignore, yield, ignore, ignore, ignore, ignore, ignore, ignore, launchNow, ignore, ignore, launchNow, becomeStopped, becomeStopped},
		lotFailed:   {disown, ignore, yield, ignore, ignore, ignore, ignore, ignore, ignore, launchNow, ignore, ignore, launchNow, becomeStopped, becomeStopped},
		lotQueued:   {disown, ignore, launchInTurn, ignore, ignore, ignore, ignore, ignore, ignore, ignore, ignore, ignore, want, becomeStopped, becomeStopped},
		lotStopping: {ownProcess, becomeStopped, yield, ignore, ignore, ignore, ignore, bury, ignore, killNow, ignore, ignore, want, unwant, killNow},
		lotEnded:    {disown, ignore, yield, ignore, ignore, ignore, ignore, ignore, leave, ignore, ignore, ignore, want, unwant, unwant},
	}
	roleTable = [phaseCount][happeningCount]roleCell{
		//               hooked    seen         lost      renewed      sockets     job       replay   due          ack        reload       hand    drill        switchover    failover      pause        resume      close       kill
		phaseStarting:  {begin, observe, renew, rIgnore, useSockets, hookDone, replayHook, roleDue, refuseAck, reconfigure, byHand, refuseDrill, refuseChange, failOver, pause, unpause, beginClose, beginKill},
		phaseLed:       {begin, observe, renew, rIgnore, useSockets, hookDone, replayHook, roleDue, ack, reconfigure, byHand, drill, switchOver, failOver, pause, unpause, beginClose, beginKill},
		phaseSwitching: {begin, observe, renew, rIgnore, useSockets, hookDone, replayHook, roleDue, ack, reconfigure, byHand, refuseDrill, refuseChange, failOver, pause, unpause, beginClose, beginKill},
		phaseVacant:    {begin, observe, renew, rIgnore, useSockets, hookDone, replayHook, roleDue, refuseAck, reconfigure, byHand, refuseDrill, refuseChange, failOver, pause, unpause, beginClose, beginKill},
		phasePaused:    {begin, observe, renew, rIgnore, useSockets, hookDone, replayHook, roleDue, refuseAck, reconfigure, byHand, refuseDrill, refuseChange, failOver, pause, unpause, beginClose, beginKill},
		phaseHeld:      {begin, observe, renew, rIgnore, useSockets, hookDone, replayHook, roleDue, ack, reconfigure, byHand, refuseDrill, refuseChange, failOver, pause, unpause, beginClose, beginKill},
		phaseRenewing:  {noteHooked, rIgnore, rIgnore, resume, useSockets, hookDone, rIgnore, roleDue, refuseAck, refuseReload, byHand, refuseDrill, refuseChange, refuseChange, pause, unpause, beginClose, beginKill},
		phaseClosing:   {noteHooked, observe, skipDrain, rIgnore, rIgnore, hookDone, rIgnore, drainDue, refuseAck, refuseReload, refuseByHand, refuseDrill, refuseChange, refuseChange, refusePause, refusePause, stayClosed, beginKill},
		phaseStopping:  {noteHooked, observe, rIgnore, rIgnore, rIgnore, hookDone, rIgnore, rIgnore, refuseAck, refuseReload, refuseByHand, refuseDrill, refuseChange, refuseChange, refusePause, refusePause, stayClosed, beginKill},
		phaseEnding:    {rIgnore, rIgnore, rIgnore, rIgnore, rIgnore, hookDone, rIgnore, rIgnore, refuseAck, refuseReload, refuseByHand, refuseDrill, refuseChange, refuseChange, refusePause, refusePause, rIgnore, beginKill},
		phaseStopped:   {rIgnore, rIgnore, rIgnore, rIgnore, rIgnore, rIgnore, rIgnore, rIgnore, refuseAck, refuseReload, refuseByHand, refuseDrill, refuseChange, refuseChange, refusePause, refusePause, rIgnore, rIgnore},
	}
}

// happening is a column of roleTable.
type happening int

const (
	hHooked happening = iota
	hSeen
	hLost
	hRenewed
	hSockets
	hJob
	hReplay
	hDue
	hAck
	hReload
	hHand
	hDrill
	hSwitchover
	hFailover
	hPause
	hResume
	hClose
	hKill
	happeningCount
)

var happeningNames = [happeningCount]string{"hooked", "seen", "lost", "renewed", "sockets", "job", "replay", "due", "ack", "reload", "hand", "drill", "switchover", "failover", "pause", "resume", "close", "kill"}

type roleCell func(*turn, input)

var roleTable [phaseCount][happeningCount]roleCell
