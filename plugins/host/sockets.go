package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/standbyd/standbyd/internal/sockpath"
)

// go-plugin names a socket with this prefix and a random number of up to ten
// digits. Into its environment goes our folder, and not the one that go-plugin
// would make: its long name is for the limit of a socket's path.
const (
	socketPrefix  = "plugin"
	socketDigits  = 10
	socketDirName = "PLUGIN_UNIX_SOCKET_DIR"
)

// prepareSockets looks whether the folder is good for the sockets of one
// plugin, makes it if it is missing, and empties it: a plugin that was killed
// leaves its socket.
func prepareSockets(dir string) error {
	if dir == "" {
		return errors.New("make the folder for sockets: HookEnv.RuntimeDir is empty")
	}
	if n := len(dir) + 1 + len(socketPrefix) + socketDigits; n > sockpath.Max {
		return fmt.Errorf("the folder %s is too long for sockets: %d bytes of path where the system allows %d; choose a shorter runtime_dir", dir, n, sockpath.Max)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder for sockets: %w", err)
	}
	sweepSockets(dir)
	return nil
}

// sweepSockets removes what processes of the plugin left. There is one at a
// time, and it is not running now.
func sweepSockets(dir string) {
	left, _ := filepath.Glob(filepath.Join(globLiteral(dir), socketPrefix+"*"))
	for _, p := range left {
		_ = os.RemoveAll(p)
	}
}

// globLiteral keeps the signs of a folder's name from being patterns.
func globLiteral(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
