//go:build darwin

package filelease

import (
	"hash/fnv"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

// bootOf names the machine's boot; 0 if the system does not tell.
func bootOf(proc.Identity) uint64 {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil || id == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64() | 1
}
