//go:build unix

package stage

import (
	"strconv"
	"syscall"
)

// prepare does what has to be done before exec, in an order in which the next
// step is still allowed: first what may need the privileges that the change of
// the user takes away, last what would hinder the stage itself.
func (o *Order) prepare() *Failure {
	if o.OOMScoreAdj != nil {
		if err := setOOMScoreAdj(*o.OOMScoreAdj); err != nil {
			return failure("oom_score_adj", strconv.Itoa(*o.OOMScoreAdj), err)
		}
	}
	if o.Nice != nil {
		const process, self = 0, 0
		if err := syscall.Setpriority(process, self, *o.Nice); err != nil {
			return failure("nice", strconv.Itoa(*o.Nice), err)
		}
	}
	for _, l := range o.Limits {
		if l.Last {
			// Only the room for it is made.
			soft, hard, err := Getrlimit(l.Resource)
			if err != nil {
				return failure("limit", l.Text, err)
			}
			l.Soft, l.Hard = soft, max(hard, l.Hard)
		}
		if err := setrlimit(l.Resource, l.Soft, l.Hard); err != nil {
			return failure("limit", l.Text, err)
		}
	}
	if o.Dir != "" {
		if err := syscall.Chdir(o.Dir); err != nil {
			return failure("dir", o.Dir, err)
		}
	}
	if o.Umask >= 0 {
		syscall.Umask(o.Umask)
	}
	if f := o.become(); f != nil {
		return f
	}
	if o.NoNewPrivs {
		if err := setNoNewPrivs(); err != nil {
			return failure("no_new_privs", "", err)
		}
	}
	for _, l := range o.Limits {
		if l.Last {
			if err := setrlimit(l.Resource, l.Soft, l.Hard); err != nil {
				return failure("limit", l.Text, err)
			}
		}
	}
	return nil
}

// become changes the user.
func (o *Order) become() *Failure {
	c := o.Credential
	if c == nil {
		return nil
	}
	groups := make([]int, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = int(g)
	}
	if err := syscall.Setgroups(groups); err != nil {
		return failure("groups", "", err)
	}
	if err := syscall.Setgid(int(c.GID)); err != nil {
		return failure("group", strconv.Itoa(int(c.GID)), err)
	}
	if err := syscall.Setuid(int(c.UID)); err != nil {
		return failure("user", strconv.Itoa(int(c.UID)), err)
	}
	return nil
}

func failure(step, on string, err error) *Failure {
	number, _ := err.(syscall.Errno)
	return &Failure{Err: number, Step: step, On: on, Advice: adviseSetting(step, number)}
}
