package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// manifestName is beside the copy, which is in filesName: a source may have a
// file of that name itself.
const (
	manifestName = "manifest.json"
	filesName    = "files"
)

// manifest says what a snapshot holds. Paths are relative to files/, with
// slashes, in the order in which they were copied.
type manifest struct {
	Format  int        `json:"format"` // 1
	Role    string     `json:"role"`
	Token   role.Token `json:"token"` // a decimal string
	Worker  string     `json:"worker"`
	Time    time.Time  `json:"time"` // when it was begun, UTC
	Source  string     `json:"source"`
	Bytes   int64      `json:"bytes"` // of all files
	Files   []file     `json:"files"`
	Folders []string   `json:"folders"`
	Links   []link     `json:"links"`
	Skipped []skipped  `json:"skipped"`

	excluded int // of Skipped
	vanished int // listed, and gone when they were to be copied
}

type file struct {
	Path    string    `json:"path"`
	Size    int64     `json:"size"`
	SHA256  string    `json:"sha256"` // of what was copied, in hex
	Mode    string    `json:"mode"`   // permissions, in octal
	ModTime time.Time `json:"mod_time"`
}

type link struct {
	Path   string `json:"path"`
	Target string `json:"target"`
}

type skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// write puts the manifest into the folder of its snapshot, synced.
func (m *manifest) write(dir *os.Root) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	f, err := dir.OpenFile(manifestName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return f.Close()
}

// readManifest reads the one of a whole snapshot.
func readManifest(dir *os.Root, n name) (*manifest, error) {
	b, err := dir.ReadFile(n.String() + "/" + manifestName)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m := &manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("read manifest of %s: %w", n, err)
	}
	return m, nil
}
