package supervisor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/standbyd/standbyd/internal/wording"
)

// history.jsonl becomes history.jsonl.1 at historyBytes, that one .2, and so
// on; historyKeep of the old ones are kept.
const (
	historyBytes = 4 << 20
	historyKeep  = 4
	historyOwed  = 1000    // records kept in memory while the disk takes none
	historyLine  = 1 << 20 // a longer line is none of ours
)

// history is the file of failover records, one JSON object a line. The lines
// of the older files precede those of the current one. Safe for concurrent use
// by the roles of one supervisor.
type history struct {
	path string
	most int64
	keep int
	torn bool // the last line was half a one when it was opened

	damaged atomic.Int64 // lines that the last reading left out

	mu      sync.Mutex
	file    *os.File
	own     fs.FileInfo // which file that is
	size    int64       // of what is whole
	half    bool        // behind it stands half a line that could not be cut off
	owed    [][]byte    // lines that the disk has not taken yet, oldest first
	failing bool        // and that was told
}

func openHistory(path string) (*history, error) {
	h := &history{path: path, most: historyBytes, keep: historyKeep}
	if err := h.openLocked(); err != nil {
		return nil, err
	}
	h.torn = h.half
	// What cannot be read is told to whoever asks for it.
	_, damaged, _ := readHistory(path, h.keep, "")
	h.damaged.Store(int64(damaged))
	return h, nil
}

// openLocked opens the file, which is made if it is not there.
func (h *history) openLocked() error {
	if fi, err := os.Stat(h.path); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("open history: %s is no file (%v): move it away, and standbyd makes the file", h.path, wording.Mode(fi.Mode()))
	}
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("open history %s: %w", h.path, err)
	}
	h.file, h.own, h.size, h.half = f, info, info.Size(), false
	// A power cut can leave half a line: what follows starts on a new one.
	if h.size > 0 {
		last := []byte{0}
		if _, err := f.ReadAt(last, h.size-1); err == nil && last[0] != '\n' {
			h.half = true
		}
	}
	return nil
}

// followLocked opens the file again if it, or its folder, was removed or
// replaced: what is written to a file without a name is lost.
func (h *history) followLocked() error {
	if now, err := os.Lstat(h.path); err == nil && os.SameFile(now, h.own) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), stateMode); err != nil {
		return fmt.Errorf("make the folder of the history again: %w", err)
	}
	old := h.file
	if err := h.openLocked(); err != nil {
		return err
	}
	old.Close()
	return nil
}

// append writes a record. While the disk takes none it keeps the last ones and
// tries again with the next; the error comes once, when that begins.
func (h *history) append(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write history of role %s: %w", r.Role, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.owed = append(h.owed, append(line, '\n'))
	if n := len(h.owed) - historyOwed; n > 0 {
		h.owed = h.owed[n:]
	}
	err = h.flushLocked()
	told := h.failing
	h.failing = err != nil
	if err != nil && !told {
		return fmt.Errorf("write history, its records are kept until the disk takes them (the last %d of them): %w", historyOwed, err)
	}
	return nil
}

func (h *history) flushLocked() error {
	if len(h.owed) == 0 {
		return nil
	}
	if err := h.followLocked(); err != nil {
		return err
	}
	if h.size >= h.most {
		if err := h.rotateLocked(); err != nil {
			return err
		}
	}
	for len(h.owed) > 0 {
		line := h.owed[0]
		if h.half {
			line = append([]byte{'\n'}, line...)
		}
		n, err := h.file.Write(line)
		if err != nil {
			// Half a line would spoil the next one.
			if n > 0 && h.file.Truncate(h.size) != nil {
				h.size, h.half = h.size+int64(n), true
			}
			return err
		}
		h.size, h.half = h.size+int64(n), false
		h.owed = h.owed[1:]
	}
	h.owed = nil
	return nil
}

// rotateLocked begins a new file. The new one is made first: a full disk leaves
// everything as it is.
func (h *history) rotateLocked() error {
	fresh, err := os.OpenFile(h.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("rotate: %w", err)
	}
	for i := h.keep - 1; i > 0 && err == nil; i-- {
		if err = os.Rename(h.old(i), h.old(i+1)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	var own fs.FileInfo
	if err == nil {
		own, err = fresh.Stat()
	}
	if err == nil {
		err = os.Rename(h.path, h.old(1))
	}
	if err == nil {
		err = os.Rename(h.path+".new", h.path)
	}
	if err != nil {
		fresh.Close()
		os.Remove(h.path + ".new")
		return fmt.Errorf("rotate: %w", err)
	}
	h.file.Close()
	h.file, h.own, h.size, h.half = fresh, own, 0, false
	return nil
}

func (h *history) old(i int) string { return fmt.Sprintf("%s.%d", h.path, i) }

// read returns the records of a role, or of all if role is empty, oldest
// first, with those that the disk has not taken yet. Damaged lines are left out.
func (h *history) read(role string) ([]Record, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	records, damaged, err := readHistory(h.path, h.keep, role)
	h.damaged.Store(int64(damaged))
	for _, line := range h.owed {
		records, _ = takeLine(records, line, role)
	}
	return records, err
}

// trouble says what of the files could not be read; empty: nothing.
func (h *history) trouble() string {
	n := h.damaged.Load()
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("damaged lines of the history in %s that are left out: %d", h.path, n)
	if h.torn {
		text += "; its last line was half a one, as a power cut leaves it"
	}
	return text
}

// ReadHistory reads the records of a state folder that no supervisor needs to
// be at work in: those of a role, or of all if it is empty, oldest first.
// damaged is the number of lines that are none, after a power cut say, and were
// left out.
func ReadHistory(stateDir, roleName string) (records []Record, damaged int, err error) {
	return readHistory(historyPath(stateDir), historyKeep, roleName)
}

func readHistory(path string, keep int, role string) (records []Record, damaged int, err error) {
	names := []string{path}
	for i := 1; i <= keep; i++ {
		names = append([]string{fmt.Sprintf("%s.%d", path, i)}, names...)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, damaged, fmt.Errorf("read history: %w", err)
		}
		err = eachLine(f, func(line []byte) {
			var ok bool
			if records, ok = takeLine(records, line, role); !ok {
				damaged++
			}
		})
		f.Close()
		if err != nil {
			return nil, damaged, fmt.Errorf("read history %s: %w", name, err)
		}
	}
	return records, damaged, nil
}

// takeLine appends the record of a line if it is of the role; false: it is none.
func takeLine(records []Record, line []byte, role string) ([]Record, bool) {
	if len(bytes.TrimSpace(line)) == 0 {
		return records, true
	}
	var r Record
	// All that is shown of a change whatever it was: half a record is damage.
	if json.Unmarshal(line, &r) != nil || r.Role == "" || r.At.IsZero() || r.Token == 0 {
		return records, false
	}
	if role == "" || r.Role == role {
		records = append(records, r)
	}
	return records, true
}

// eachLine calls f for each line. Of a line that is too long to be one of ours
// f gets the beginning.
func eachLine(file io.Reader, f func([]byte)) error {
	in := bufio.NewReaderSize(file, 1<<16)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) <= historyLine {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 {
			f(line)
		}
		line = line[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// close makes a last try for what the disk has not taken.
func (h *history) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.flushLocked(), h.file.Close())
}
