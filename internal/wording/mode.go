package wording

import "io/fs"

// Mode is the mode of a file as ls shows it: drwxrwxrwt.
func Mode(m fs.FileMode) string {
	b := []byte(m.Perm().String()) // -rwxr-xr-x
	for kind, letter := range map[fs.FileMode]byte{
		fs.ModeDir: 'd', fs.ModeSymlink: 'l', fs.ModeNamedPipe: 'p', fs.ModeSocket: 's',
		fs.ModeDevice: 'b', fs.ModeDevice | fs.ModeCharDevice: 'c',
	} {
		if m.Type() == kind {
			b[0] = letter
		}
	}
	// These stand in place of an x; in capitals where there is none.
	for bit, at := range map[fs.FileMode]int{fs.ModeSetuid: 3, fs.ModeSetgid: 6, fs.ModeSticky: 9} {
		letter := byte('s')
		if at == 9 {
			letter = 't'
		}
		if m&bit == 0 {
			continue
		}
		if b[at] == '-' {
			letter -= 'a' - 'A'
		}
		b[at] = letter
	}
	return string(b)
}
