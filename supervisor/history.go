package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// historyBytes is the size at which history.jsonl becomes history.jsonl.1.
const historyBytes = 4 << 20

// history is the file of failover records, one JSON object a line. The lines
// of the rotated file precede those of the current one. Safe for concurrent
// use by the roles of one supervisor.
type history struct {
	path string
	most int64

	mu   sync.Mutex
	file *os.File
	size int64
}

func openHistory(path string) (*history, error) {
	h := &history{path: path, most: historyBytes}
	return h, h.open()
}

func (h *history) open() error {
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("open history %s: %w", h.path, err)
	}
	h.file, h.size = f, info.Size()
	// A crash can leave half a line: what follows starts on a new one.
	if h.size > 0 {
		last := []byte{0}
		if _, err := f.ReadAt(last, h.size-1); err == nil && last[0] != '\n' {
			n, _ := f.Write([]byte{'\n'})
			h.size += int64(n)
		}
	}
	return nil
}

func (h *history) append(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write history of role %s: %w", r.Role, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.size >= h.most {
		if err := os.Rename(h.path, h.path+".1"); err != nil {
			return fmt.Errorf("rotate history: %w", err)
		}
		h.file.Close()
		if err := h.open(); err != nil {
			return err
		}
	}
	n, err := h.file.Write(append(line, '\n'))
	h.size += int64(n)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// read returns the records of a role, or of all if role is empty, oldest
// first. Lines that are damaged are left out.
func (h *history) read(role string) ([]Record, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return readHistory(h.path, role)
}

func readHistory(path, role string) ([]Record, error) {
	var records []Record
	for _, name := range []string{path + ".1", path} {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r Record
			if json.Unmarshal(lines.Bytes(), &r) == nil && (role == "" || r.Role == role) {
				records = append(records, r)
			}
		}
		err = lines.Err()
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("read history %s: %w", name, err)
		}
	}
	return records, nil
}

func (h *history) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.file.Close()
}
