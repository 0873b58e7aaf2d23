//go:build unix

package stage

import (
	"os"
	"syscall"
)

// adviseSetting says what is behind a setting that failed.
func adviseSetting(step string, err syscall.Errno) string {
	if err != syscall.EPERM && err != syscall.EACCES {
		return ""
	}
	switch step {
	case "nice":
		return "a lower niceness than the supervisor's needs root or CAP_SYS_NICE"
	case "oom_score_adj":
		return "a lower value than the supervisor's needs root or CAP_SYS_RESOURCE"
	case "limit":
		return "a limit above the supervisor's own hard one needs root or CAP_SYS_RESOURCE"
	}
	return ""
}

// AdviseExec says what is behind an exec that failed, if that can be seen.
func AdviseExec(path string, err error) string {
	fi, serr := os.Stat(path)
	if serr != nil {
		return ""
	}
	switch err {
	case syscall.ENOENT:
		return "the file exists, but the interpreter or loader that it names does not"
	case syscall.EACCES:
		switch {
		case fi.IsDir():
			return "it is a directory"
		case fi.Mode()&0o111 == 0:
			return "the file is not executable: chmod +x"
		}
		return "this user may not execute the file, or its file system is mounted noexec"
	case syscall.ENOEXEC:
		return "neither a program for this machine nor a script that starts with #!"
	case syscall.EAGAIN:
		return "the user has as many processes as the limit nproc allows"
	case syscall.ETXTBSY:
		return "somebody has the file open for writing"
	}
	return ""
}
