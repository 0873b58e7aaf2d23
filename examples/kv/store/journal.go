package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// journal is one journal opened for reading.
type journal struct {
	f        *os.File
	manifest manifest
	begin    int64 // where the records start

	buf  []byte // the last bytes that were read
	base int64  // where buf starts in the file
}

func openJournal(dir string, id ID) (*journal, error) {
	f, err := os.Open(filepath.Join(dir, id.String()))
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	j := &journal{f: f}
	j.begin, err = decodeHeader(f, journalMagic, &j.manifest)
	if err == nil {
		err = j.manifest.check(id)
	}
	if err != nil {
		// The header was durable before the file had its name: this is no
		// unfinished write.
		f.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, f.Name(), err)
	}
	return j, nil
}

func (j *journal) close() { j.f.Close() }

// at returns up to n bytes from offset; fewer only at the end of the file.
func (j *journal) at(offset int64, n int) ([]byte, error) {
	if offset >= j.base && offset+int64(n) <= j.base+int64(len(j.buf)) {
		return j.buf[offset-j.base:][:n], nil
	}
	want := max(n, 256<<10)
	if cap(j.buf) < want {
		j.buf = make([]byte, want)
	}
	got, err := j.f.ReadAt(j.buf[:want], offset)
	j.buf, j.base = j.buf[:got], offset
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s at byte %d: %w", j.f.Name(), offset, err)
	}
	return j.buf[:min(n, got)], nil
}

// forget drops what was read before, so that the next read sees the file as
// it is now.
func (j *journal) forget() { j.buf, j.base = j.buf[:0], 0 }

// next reads the record at offset. The record's value is only good until the
// next call. errShort and errBad come back wrapped and mean that no whole
// record stands there now.
func (j *journal) next(offset int64) (record, error) {
	b, err := j.at(offset, recordHeader)
	if err != nil {
		return record{}, err
	}
	r, err := parseRecord(b, j.manifest.Salt, offset)
	if !errors.Is(err, errShort) || len(b) < recordHeader {
		return r, err
	}
	if b, err = j.at(offset, recordHeader+bodyLength(b)); err != nil {
		return record{}, err
	}
	return parseRecord(b, j.manifest.Salt, offset)
}

// unfinished decides what an unreadable record at offset of the newest
// journal is. It returns nil if it is the unfinished end of the file, and
// ErrCorrupt if a later record says that the bytes at offset were durable once.
func (j *journal) unfinished(offset int64, why error) error {
	info, err := j.f.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", j.f.Name(), err)
	}
	// Backwards through the file would find a witness sooner, but the rest of
	// a journal after an unfinished write is short in every ordinary case.
	for from := offset + 1; from < info.Size(); {
		b, err := j.at(from, 64<<10)
		if err != nil {
			return err
		}
		i := bytes.Index(b, []byte(recordMagic))
		if i < 0 {
			from += int64(max(1, len(b)-len(recordMagic)+1))
			continue
		}
		from += int64(i)
		r, err := j.next(from)
		switch {
		case err == nil && r.durable > offset:
			return fmt.Errorf("%w: %s: at byte %d: %w, although a record at byte %d says that %d bytes were durable",
				ErrCorrupt, j.f.Name(), offset, why, from, r.durable)
		case err != nil && !errors.Is(err, errShort) && !errors.Is(err, errBad):
			return err
		}
		from++
	}
	return nil
}
