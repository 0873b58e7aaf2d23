package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// Access says who may use the control socket besides root and the daemon's own
// user. The zero value: nobody. The kernel lets members of the group connect,
// by the socket's mode; here it is looked at once more who that was.
type Access struct {
	Group string // name, for messages
	GID   int    // members of this group may, if Group is set
	Full  bool   // every request, not only those that change nothing
}

// ErrForbidden: the peer may not do that.
var ErrForbidden = errors.New("not allowed")

// peer is who is at the other end of a connection, as the kernel says.
type peer struct {
	uid, gid int
	err      error // why it could not be told
}

type peerKey struct{}

// peerOf asks the kernel who connected.
func peerOf(c *net.UnixConn) (p peer) {
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { p.uid, p.gid, p.err = credentials(int(fd)) })
	}
	if err != nil {
		p.err = err
	}
	return p
}

// withPeer remembers who connected; of a connection that is no unix socket
// nothing is remembered, and its requests may read only.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peerOf(u))
}

// rights is what a peer may do.
type rights int

const (
	mayNothing rights = iota
	mayRead
	mayAll
)

// rightsOf applies the rules to a peer. What cannot be told is not allowed.
func (a Access) rightsOf(p peer, own int) rights {
	switch {
	case p.err != nil:
		return mayNothing
	case p.uid == 0 || p.uid == own:
		return mayAll
	case a.Group != "" && (p.gid == a.GID || memberOf(p.uid, a.GID)):
		if a.Full {
			return mayAll
		}
		return mayRead
	}
	return mayNothing
}

// memberOf asks the user database; a process that got the group in another way
// has it as its first one.
func memberOf(uid, gid int) bool {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return false
	}
	groups, err := u.GroupIds()
	return err == nil && slices.Contains(groups, strconv.Itoa(gid))
}

// guarded lets a request through to h if whoever connected may make it.
func (s *Server) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, known := r.Context().Value(peerKey{}).(peer)
		if !known {
			p.err = errors.New("it did not come over the control socket")
		}
		need, what := mayAll, "change anything"
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			need, what = mayRead, "read anything"
		}
		if s.Access.rightsOf(p, os.Geteuid()) >= need {
			h.ServeHTTP(w, r)
			return
		}
		who := "somebody unknown: " + fmt.Sprint(p.err)
		if p.err == nil {
			who = person(p.uid)
		}
		allowed := []string{"root", person(os.Geteuid())}
		if s.Access.Group != "" && (s.Access.Full || need == mayRead) {
			allowed = append(allowed, "members of group "+s.Access.Group)
		}
		hint := "control_group in the config's [supervisor] lets a group in"
		if s.Access.Group != "" {
			hint = `control_access = "full" in the config's [supervisor] lets group ` + s.Access.Group + " do everything"
		}
		fail(w, fmt.Errorf("%w: %s may not %s over this socket, only %s may; %s", ErrForbidden, who, what, strings.Join(slices.Compact(allowed), ", "), hint))
	})
}
