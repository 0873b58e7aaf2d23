package filelease

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// recordVersion is raised with every change that an older program must not
// misread. A field that is absent is unknown.
const recordVersion = 1

// record is the content of KEY.lease.json.
type record struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
	Epoch   uint64 `json:"epoch"`
	Claim   string `json:"claim,omitempty"` // random, of one grant
	Run     string `json:"run,omitempty"`
	Block   string `json:"block,omitempty"`

	PID     int    `json:"pid,omitempty"`
	Start   uint64 `json:"start,omitempty"`   // clock ticks since boot
	Boot    uint64 `json:"boot,omitempty"`    // hash of the machine's boot id
	PIDNS   uint64 `json:"pidns,omitempty"`   // inode of the pid namespace
	Host    string `json:"host,omitempty"`    // name, for people
	Machine string `json:"machine,omitempty"` // /etc/machine-id
	Live    uint64 `json:"live,omitempty"`    // inode of KEY.live that the holder locked

	SessionHint string    `json:"session_hint,omitempty"`
	Label       string    `json:"label,omitempty"`
	Program     string    `json:"program_version,omitempty"`
	Since       time.Time `json:"since,omitzero"` // wall clock, for people
}

// readRecord is nil if nobody holds the lease.
func (s *Store) readRecord(key string) (*record, error) {
	path := s.file(key, leaseSuffix)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lease: %w", err)
	}
	r := new(record)
	why := json.Unmarshal(b, r)
	switch {
	case why != nil:
	case r.Version > recordVersion:
		why = fmt.Errorf("it is of version %d, and this program knows %d", r.Version, recordVersion)
	case r.Version < 1 || r.Key != key || r.Epoch == 0:
		why = errors.New("it is not the record of this key")
	}
	if why != nil {
		return nil, fmt.Errorf("%s is %w, so somebody may hold the lease: %w; move it away if you are sure that nobody does", path, ErrUnreadable, why)
	}
	return r, nil
}

func (s *Store) writeRecord(r *record) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(s.file(r.Key, leaseSuffix), append(b, '\n'))
}

func (r *record) identity() proc.Identity {
	return proc.Identity{PID: r.PID, Start: r.Start, Boot: r.Boot, PIDNS: r.PIDNS}
}

func (r *record) holder() Holder {
	return Holder{
		PID: r.PID, Host: r.Host, Run: r.Run, Block: r.Block, SessionHint: r.SessionHint,
		Label: r.Label, Version: r.Program, Epoch: r.Epoch, Since: r.Since,
	}
}
