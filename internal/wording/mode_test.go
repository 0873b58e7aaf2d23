package wording

import (
	"io/fs"
	"testing"
)

func TestMode(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0o640:                                     "-rw-r-----",
		fs.ModeDir | 0o755:                        "drwxr-xr-x",
		fs.ModeDir | fs.ModeSticky | 0o777:        "drwxrwxrwt",
		fs.ModeDir | fs.ModeSticky | 0o770:        "drwxrwx--T",
		fs.ModeDir | fs.ModeSetgid | 0o770:        "drwxrws---",
		fs.ModeSetuid | 0o600:                     "-rwS------",
		fs.ModeSocket | 0o666:                     "srw-rw-rw-",
		fs.ModeNamedPipe | 0o600:                  "prw-------",
		fs.ModeDevice | fs.ModeCharDevice | 0o666: "crw-rw-rw-",
		fs.ModeDevice | 0o660:                     "brw-rw----",
		fs.ModeSymlink | 0o777:                    "lrwxrwxrwx",
	} {
		if got := Mode(mode); got != want {
			t.Errorf("%v is %s, want %s", mode, got, want)
		}
	}
}
