//go:build windows

package filelease

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

func networkFS(dir string) (kind string, network bool, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", false, err
	}
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(abs) + `\`)
	if err != nil {
		return "", false, err
	}
	return "remote drive", windows.GetDriveType(root) == windows.DRIVE_REMOTE, nil
}
