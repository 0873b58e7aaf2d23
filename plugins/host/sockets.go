package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// What go-plugin appends to the folder it is given: its own folder and the
// socket, each with a random number of up to ten digits.
const socketSuffix = len("/plugin-dir") + 10 + len("/plugin") + 10

// socketDir makes the private folder of one plugin's sockets in the role's and
// empties it: a plugin that was killed leaves its socket.
func socketDir(runtimeDir, plugin string) (string, error) {
	if runtimeDir == "" {
		return "", errors.New("make the folder for sockets: HookEnv.RuntimeDir is empty")
	}
	// Names may be long, and the whole path may not.
	sum := sha256.Sum256([]byte(plugin))
	dir := filepath.Join(runtimeDir, hex.EncodeToString(sum[:3]))
	if n, most := len(dir)+socketSuffix, longestSocket(); n > most {
		return "", fmt.Errorf("the runtime folder %s is too long for sockets: %d bytes of path where the system allows %d; choose a shorter runtime_dir",
			runtimeDir, n, most)
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("clear the folder for sockets: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder for sockets: %w", err)
	}
	return dir, nil
}

func longestSocket() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}
