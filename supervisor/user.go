package supervisor

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/standbyd/standbyd/internal/launch"
)

// identity is who a role's workers run as. The zero identity is the
// supervisor's own user.
type identity struct {
	credential *launch.Credential
	name, home string
}

// owner is who owns the files that workers open; -1 leaves it to us.
func (u identity) owner() (uid, gid int) {
	if u.credential == nil {
		return -1, -1
	}
	return int(u.credential.UID), int(u.credential.GID)
}

// lookUser finds the role's user and group. Running as somebody else needs root.
func lookUser(c *RoleConfig) (identity, error) {
	if c.User == "" && c.Group == "" {
		return identity{}, nil
	}
	bad := func(field string, err error) error {
		return &ConfigError{Role: c.Name, Field: field, Msg: "cannot run workers as that", Err: err}
	}
	var id identity
	cred := &launch.Credential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if c.User != "" {
		u, err := user.Lookup(c.User)
		if err != nil {
			if _, nerr := strconv.ParseUint(c.User, 10, 32); nerr != nil {
				return id, bad("user", err)
			}
			if u, err = user.LookupId(c.User); err != nil {
				// A number without an entry is a user too, of its own group.
				u = &user.User{Uid: c.User, Gid: c.User, Username: c.User, HomeDir: "/"}
			}
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr != nil || gerr != nil {
			return id, bad("user", fmt.Errorf("user %s has no number", c.User))
		}
		cred.UID, cred.GID = uint32(uid), uint32(gid)
		id.name, id.home = u.Username, u.HomeDir
		groups, _ := u.GroupIds()
		for _, g := range groups {
			if n, err := strconv.ParseUint(g, 10, 32); err == nil {
				cred.Groups = append(cred.Groups, uint32(n))
			}
		}
	}
	if c.Group != "" {
		gid, err := strconv.ParseUint(c.Group, 10, 32)
		if err != nil {
			g, lerr := user.LookupGroup(c.Group)
			if lerr != nil {
				return id, bad("group", lerr)
			}
			if gid, err = strconv.ParseUint(g.Gid, 10, 32); err != nil {
				return id, bad("group", err)
			}
		}
		cred.GID = uint32(gid)
	}
	same := cred.UID == uint32(os.Geteuid()) && cred.GID == uint32(os.Getegid())
	if same {
		return identity{}, nil
	}
	if os.Geteuid() != 0 {
		field := "user"
		if c.User == "" {
			field = "group"
		}
		return id, bad(field, fmt.Errorf("the supervisor would have to run as root, and runs as uid %d", os.Geteuid()))
	}
	id.credential = cred
	return id, nil
}
