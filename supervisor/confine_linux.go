//go:build linux

package supervisor

// confines: oom_score_adj and no_new_privs exist.
const confines = true
