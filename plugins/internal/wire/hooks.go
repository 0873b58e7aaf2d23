package wire

// The words of DescribeResponse.hooks. Append-only.
const (
	HookConfigure      = "configure"
	HookPrePromote     = "pre_promote"
	HookOnPromote      = "on_promote"
	HookOnDemote       = "on_demote"
	HookOnLeaderChange = "on_leader_change"
	HookStop           = "stop"
)
