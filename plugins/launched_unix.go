//go:build unix

package plugins

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/standbyd/standbyd/plugins/internal/wire"
)

// launched says that a supervisor started this process as a plugin. handshake
// is then the pipe on which it waits for the handshake, and nothing else.
var (
	launched  bool
	handshake *os.File
)

// init runs before the program's own code, so that nothing which that prints
// can end up in the handshake, and a program that never comes to Serve ends
// with its supervisor all the same. In any other program it does nothing.
func init() {
	if os.Getenv(wire.CookieKey) != wire.CookieValue {
		return
	}
	// A child of the plugin that imports this package is no plugin.
	os.Unsetenv(wire.CookieKey)
	if err := takeOver(); err != nil {
		fmt.Fprintf(os.Stderr, "start as a plugin: %v\n", err)
		os.Exit(1)
	}
	launched = true
	log.SetFlags(0) // the role's log stamps every line
}

// takeOver moves the lifeline and the handshake pipe to descriptors that no
// child inherits, and puts /dev/null and standard error in their places.
func takeOver() error {
	var st unix.Stat_t
	if err := unix.Fstat(0, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
		lifeline, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return fmt.Errorf("keep the lifeline: %w", err)
		}
		null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", os.DevNull, err)
		}
		if err := replace(null, 0); err != nil {
			return fmt.Errorf("replace standard input: %w", err)
		}
		unix.Close(null)
		// Non-blocking, so that the wait costs no thread.
		if err := unix.SetNonblock(lifeline, true); err != nil {
			return fmt.Errorf("keep the lifeline: %w", err)
		}
		go watchLifeline(os.NewFile(uintptr(lifeline), "lifeline"))
	}
	n, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return fmt.Errorf("keep the handshake pipe: %w", err)
	}
	if err := replace(2, 1); err != nil {
		return fmt.Errorf("move standard output to standard error: %w", err)
	}
	handshake = os.NewFile(uintptr(n), "handshake")
	return nil
}

// watchLifeline ends the process when the supervisor's end of the pipe is
// gone, whatever the reason. There is no clean-up on purpose: from that moment
// on somebody else may lead.
func watchLifeline(f *os.File) {
	_, _ = io.Copy(io.Discard, f)
	os.Exit(wire.ExitLost)
}

func unsetLaunchEnv() {
	os.Unsetenv(wire.CookieKey)
	for _, e := range os.Environ() {
		if key, _, _ := strings.Cut(e, "="); strings.HasPrefix(key, "PLUGIN_") {
			os.Unsetenv(key)
		}
	}
}

// restoreOutput puts the files back before the first call is served.
func restoreOutput(stdout, stderr *os.File) grpc.UnaryServerInterceptor {
	var once sync.Once
	var streamed [2]*os.File // kept: a collected pipe would be closed
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		once.Do(func() {
			streamed = [2]*os.File{os.Stdout, os.Stderr}
			os.Stdout, os.Stderr = stdout, stderr
		})
		_ = streamed
		return next(ctx, req)
	}
}
