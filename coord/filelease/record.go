package filelease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// recordVersion is raised with every change that an older program must not
// misread. A field that is absent is unknown, and proves nothing.
const recordVersion = 1

// record is the content of KEY.lease.json; docs/filelease.md has it for users.
type record struct {
	Version int     `json:"version"`
	Key     string  `json:"key"`
	Epoch   uint64  `json:"epoch"`
	Claim   string  `json:"claim,omitempty"` // random, of one grant
	Run     string  `json:"run,omitempty"`
	Block   *string `json:"block,omitempty"` // always written; may be empty

	Host    string   `json:"host,omitempty"`
	Machine string   `json:"machine,omitempty"` // /etc/machine-id
	Boot    id       `json:"boot,omitempty"`    // hash of the machine's boot id
	PIDNS   uint64   `json:"pidns,omitempty"`   // inode of the pid namespace
	TimeNS  uint64   `json:"timens,omitempty"`  // inode of the time namespace
	PID     int      `json:"pid,omitempty"`
	Start   uint64   `json:"start,omitempty"` // clock ticks since boot
	Live    uint64   `json:"live,omitempty"`  // number of KEY.live, if the holder has locked it
	Command *command `json:"command,omitempty"`

	Pinned   bool     `json:"pinned,omitempty"` // see Claimant
	TTL      duration `json:"ttl,omitempty"`
	Boottime int64    `json:"renewed_boottime_ns,omitempty"` // of the last renewal
	Renewals uint64   `json:"renewals,omitempty"`

	SessionHint string    `json:"session_hint,omitempty"`
	Label       string    `json:"label,omitempty"`
	Program     string    `json:"program_version,omitempty"`
	Since       time.Time `json:"since,omitzero"`   // wall clock, for people
	Renewed     time.Time `json:"renewed,omitzero"` // the same
}

// command is a process group that acts under the lease beside its holder.
type command struct {
	PID   int    `json:"pid"` // and the group's number
	Start uint64 `json:"start,omitempty"`
}

// id is written in hexadecimal: as a number, jq and others would round it.
type id uint64

func (i id) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(i)), nil }

func (i *id) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 64)
	*i = id(n)
	return err
}

// duration is written as "15s".
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err == nil && v <= 0 {
		err = fmt.Errorf("%v is not above 0", v)
	}
	*d = duration(v)
	return err
}

// found is what is at KEY.lease.json.
type found struct {
	raw     []byte
	r       *record     // nil: nobody holds it, or it is damaged
	damaged error       // why there is no record in it
	info    fs.FileInfo // nil: there is no file
	number  uint64      // of the file
	epoch   uint64      // as far as it can be read
	ttl     time.Duration
}

// find reads the record of key. The error is that it cannot be looked at.
func (s *Store) find(key string) (found, error) {
	var f found
	file, err := os.Open(s.file(key, leaseSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read the lease: %w", err)
	}
	defer file.Close()
	if f.info, err = file.Stat(); err != nil {
		return f, fmt.Errorf("read the lease: %w", err)
	}
	if !f.info.Mode().IsRegular() {
		return f, fmt.Errorf("read the lease: %s is not a file", file.Name())
	}
	f.number = fileNumber(file)
	var b bytes.Buffer
	if _, err := b.ReadFrom(file); err != nil {
		return f, fmt.Errorf("read the lease: %w", err)
	}
	f.raw = b.Bytes()
	f.r, f.damaged = parseRecord(f.raw, key)
	if f.r != nil {
		f.epoch, f.ttl = f.r.Epoch, time.Duration(f.r.TTL)
		s.watch.note(key, f.ttl)
		return f, nil
	}
	var rest struct {
		Epoch uint64 `json:"epoch"`
	}
	if json.Unmarshal(f.raw, &rest) == nil { // a newer version's
		f.epoch = rest.Epoch
	}
	var more struct {
		TTL duration `json:"ttl"`
	}
	if json.Unmarshal(f.raw, &more) == nil {
		f.ttl = time.Duration(more.TTL)
	}
	return f, nil
}

func parseRecord(b []byte, key string) (*record, error) {
	r := new(record)
	if len(b) == 0 {
		return nil, errors.New("it is empty")
	}
	if err := json.Unmarshal(b, r); err != nil {
		// Of another version, a field may have another type.
		var v struct {
			Version int `json:"version"`
		}
		if json.Unmarshal(b, &v) == nil && v.Version > recordVersion {
			return nil, newer(v.Version)
		}
		return nil, err
	}
	switch {
	case r.Version > recordVersion:
		return nil, newer(r.Version)
	case r.Version < 1 || r.Key != key || r.Epoch == 0:
		return nil, errors.New("it is not the record of this key")
	}
	return r, nil
}

func newer(version int) error {
	return fmt.Errorf("it is of version %d, and this program knows %d", version, recordVersion)
}

// write stamps the record as renewed now and puts it in place. The returned
// time is what others will count from.
func (s *Store) write(r *record) (time.Duration, error) {
	now := s.clock.Boottime()
	r.Boottime = int64(now)
	r.Renewed = s.clock.Now().UTC().Truncate(time.Second)
	r.Renewals++
	r.TTL = duration(s.ttl)
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return 0, err
	}
	return now, replaceFile(s.file(r.Key, leaseSuffix), append(b, '\n'))
}

func (r *record) block() string {
	if r.Block == nil {
		return ""
	}
	return *r.Block
}

func (r *record) holder() Holder {
	h := Holder{
		PID: r.PID, Host: r.Host, Run: r.Run, Block: r.block(), SessionHint: r.SessionHint,
		Label: r.Label, Version: r.Program, Epoch: r.Epoch, Since: r.Since, Renewed: r.Renewed,
		TTL: time.Duration(r.TTL), Pinned: r.Pinned,
	}
	if r.Command != nil {
		h.Command = r.Command.PID
	}
	return h
}

// identityOf is the holder's as this machine's process table would have it.
func (s *Store) identityOf(r *record, pid int, start uint64) proc.Identity {
	if r.TimeNS != s.timens {
		start = 0 // counted from another moment
	}
	return proc.Identity{PID: pid, Start: start, Boot: s.self.Boot, PIDNS: r.PIDNS}
}
