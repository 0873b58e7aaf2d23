//go:build linux

package launch

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const oomFile = "/proc/self/oom_score_adj"

func setOOMScoreAdj(n int) error {
	err := os.WriteFile(oomFile, []byte(strconv.Itoa(n)), 0)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func setNoNewPrivs() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }
