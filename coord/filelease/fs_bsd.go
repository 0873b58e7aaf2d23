//go:build darwin || freebsd

package filelease

import "golang.org/x/sys/unix"

func networkFS(dir string) (kind string, network bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", false, err
	}
	return "not local", uint64(st.Flags)&unix.MNT_LOCAL == 0, nil
}
