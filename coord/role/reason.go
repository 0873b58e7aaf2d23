package role

// Reason says why leadership changed. The strings leave the process (JSON,
// plugins, history) and are append-only.
type Reason string

const (
	ReasonFirst      Reason = "first"      // nobody had led in this segment before
	ReasonCrash      Reason = "crash"      // the leader's process died
	ReasonHang       Reason = "hang"       // it stopped beating, or made no progress, for more than grace epochs
	ReasonSwitchover Reason = "switchover" // planned: it drained and handed over
	ReasonForced     Reason = "forced"     // an operator's failover
	ReasonStepDown   Reason = "step-down"  // it resigned, or its lead returned
	ReasonPreempt    Reason = "preempt"    // the policy gave the lease to a better claimant
	ReasonDrill      Reason = "drill"      // a fault that standbyd caused on purpose
	ReasonAdopted    Reason = "adopted"    // no change: a new supervisor found this leader at work
	ReasonStopped    Reason = "stopped"    // demotion because the role or the supervisor stops
)
