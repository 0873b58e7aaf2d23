//go:build linux

package proc

// Stopped reports whether a process is stopped, by a signal such as SIGSTOP or
// by a debugger (then traced is true too). What cannot be told is false.
func Stopped(pid int) (stopped, traced bool) {
	st, err := readStat(pid, 0)
	if err != nil {
		return false, false
	}
	return st.state == 'T' || st.state == 't', st.state == 't'
}
