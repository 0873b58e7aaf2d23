package store

import (
	"fmt"
	"os"
	"slices"

	"github.com/standbyd/standbyd/coord/role"
)

// ID names one journal. A leader begins with part 1 and opens the next part
// when one has grown large. IDs are ordered by token, then part.
type ID struct {
	Token role.Token `json:"token"`
	Part  uint32     `json:"part"`
}

// Compare orders a and b as slices.SortFunc wants it.
func (a ID) Compare(b ID) int {
	switch {
	case a.Token < b.Token, a.Token == b.Token && a.Part < b.Part:
		return -1
	case a == b:
		return 0
	}
	return 1
}

func (a ID) isZero() bool { return a == ID{} }

// String is the name of the journal's file.
func (a ID) String() string { return fmt.Sprintf("journal-%020d-%06d", uint64(a.Token), a.Part) }

// Position is a place in the history of a store: all records of the journals
// before ID that count, and those of ID that end at or before Offset.
type Position struct {
	ID     ID     `json:"journal"`
	Offset int64  `json:"offset"` // bytes from the start of the journal's file
	Seq    uint64 `json:"sequence"`
}

func (p Position) String() string { return fmt.Sprintf("%s at byte %d", p.ID, p.Offset) }

func snapshotName(p Position) string {
	return fmt.Sprintf("snapshot-%020d-%06d-%020d", uint64(p.ID.Token), p.ID.Part, p.Offset)
}

// place is a Position as far as a snapshot's file name tells it.
type place struct {
	id     ID
	offset int64
}

func (a place) compare(b place) int {
	if c := a.id.Compare(b.id); c != 0 {
		return c
	}
	switch {
	case a.offset < b.offset:
		return -1
	case a.offset > b.offset:
		return 1
	}
	return 0
}

// listing is what a folder holds, each in ascending order.
type listing struct {
	journals  []ID
	snapshots []place
	temps     []string // names
}

// newest returns the journal that decides, or the zero ID.
func (l listing) newest() ID {
	if len(l.journals) == 0 {
		return ID{}
	}
	return l.journals[len(l.journals)-1]
}

// list reads the folder. Files with other names are none of the store's business.
func list(dir string) (listing, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return listing{}, fmt.Errorf("list the store: %w", err)
	}
	var l listing
	for _, e := range entries {
		name := e.Name()
		var token uint64
		var p place
		if name[0] == '.' {
			if isTemp(name) {
				l.temps = append(l.temps, name)
			}
			continue
		}
		if n, _ := fmt.Sscanf(name, "journal-%d-%d", &token, &p.id.Part); n == 2 {
			p.id.Token = role.Token(token)
			if p.id.String() == name {
				l.journals = append(l.journals, p.id)
			}
			continue
		}
		if n, _ := fmt.Sscanf(name, "snapshot-%d-%d-%d", &token, &p.id.Part, &p.offset); n == 3 {
			p.id.Token = role.Token(token)
			if snapshotName(Position{ID: p.id, Offset: p.offset}) == name {
				l.snapshots = append(l.snapshots, p)
			}
		}
	}
	slices.SortFunc(l.journals, ID.Compare)
	slices.SortFunc(l.snapshots, place.compare)
	return l, nil
}
