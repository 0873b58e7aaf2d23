//go:build unix

package rolesock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/sockpath"
)

// Socket is the receiving end. Receive is for one goroutine; the other methods
// are safe for concurrent use.
type Socket struct {
	conn    *net.UnixConn
	path    string
	own     sockpath.Own
	buf     []byte
	oob     []byte
	ignored atomic.Uint64
	once    sync.Once
}

// Listen binds path and gives it to uid and gid (-1 leaves one as it is) with
// mode 0600. A socket that a crashed process left there is replaced; one that
// somebody listens on is ErrInUse, and a file of another kind an error.
func Listen(path string, uid, gid int) (*Socket, error) {
	if err := sockpath.Check(path); err != nil {
		return nil, fmt.Errorf("listen for the role: %w: choose a shorter runtime folder", err)
	}
	if err := sockpath.Clear(path); errors.Is(err, sockpath.ErrLive) {
		return nil, fmt.Errorf("listen on %s: %w", path, ErrInUse)
	} else if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { prepare(int(fd)) })
	}}
	pc, err := lc.ListenPacket(context.Background(), "unixgram", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, errors.Unwrap(err))
	}
	s := &Socket{conn: pc.(*net.UnixConn), path: path, buf: make([]byte, MaxState+1), oob: make([]byte, oobSize)}
	err = os.Chmod(path, 0o600)
	if err == nil && (uid >= 0 || gid >= 0) {
		err = os.Chown(path, uid, gid)
	}
	if err == nil {
		s.own, err = sockpath.Keep(path)
	}
	if err != nil {
		s.conn.Close()
		os.Remove(path)
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return s, nil
}

// Receive waits for the next datagram. Ones that are too long or carry too
// many files are dropped and counted in Ignored. After Close the error is
// net.ErrClosed. The queue of such a socket is short (10 datagrams on some
// kernels): call Receive again soon.
func (s *Socket) Receive() (Message, error) {
	for {
		n, oobn, flags, _, err := s.conn.ReadMsgUnix(s.buf, s.oob)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return Message{}, net.ErrClosed
			}
			return Message{}, fmt.Errorf("receive on %s: %w", s.path, err)
		}
		m := Message{UID: -1}
		whole := readControl(s.oob[:oobn], &m)
		if !whole || n > MaxState || len(m.Files) > MaxFiles || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			m.CloseFiles()
			s.ignored.Add(1)
			continue
		}
		m.Fields = parseState(string(s.buf[:n]))
		return m, nil
	}
}

// parseState reads KEY=VALUE lines; anything else in the text is skipped, so
// that a newer sender can say more.
func parseState(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.SplitSeq(text, "\n") {
		if key, value, ok := strings.Cut(line, "="); ok && key != "" {
			fields[key] = value
		}
	}
	return fields
}

// readControl takes files and credentials out of a datagram's control part.
// Every file in it ends up in m, also if the rest is damaged.
func readControl(oob []byte, m *Message) (whole bool) {
	parts, err := unix.ParseSocketControlMessage(oob)
	whole = err == nil
	for i := range parts {
		if parts[i].Header.Level != unix.SOL_SOCKET {
			continue
		}
		if parts[i].Header.Type != unix.SCM_RIGHTS {
			readCredentials(&parts[i], m)
			continue
		}
		fds, err := unix.ParseUnixRights(&parts[i])
		whole = whole && err == nil
		for _, fd := range fds {
			m.Files = append(m.Files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return whole
}

// Path is what Listen was given.
func (s *Socket) Path() string { return s.path }

// Lost tells whether the path leads to this socket no more: it was removed or
// replaced.
func (s *Socket) Lost() bool { return s.own.Lost() }

// Ignored counts the datagrams that Receive dropped.
func (s *Socket) Ignored() uint64 { return s.ignored.Load() }

// Close ends a waiting Receive and removes the path, unless it is somebody
// else's by now. A second Close does nothing.
func (s *Socket) Close() error {
	var err error
	s.once.Do(func() {
		err = errors.Join(s.own.Remove(), s.conn.Close())
	})
	return err
}
