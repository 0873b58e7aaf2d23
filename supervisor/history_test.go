package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// entry is a record with all that one must have.
func entry(term uint64) Record {
	return Record{Role: "kv", At: time.Now(), Term: term, Token: role.MakeToken(1, term)}
}

func terms(t *testing.T, h *history, role string) (terms []uint64) {
	t.Helper()
	records, err := h.read(role)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		terms = append(terms, r.Term)
	}
	return terms
}

// TestHistoryIsRotated keeps so many files, and every record that is in one.
func TestHistoryIsRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	h.most, h.keep = 600, 3
	us := 12.5
	for term := range uint64(40) {
		name := "kv"
		if term%2 == 1 {
			name = "other"
		}
		if err := h.append(Record{Role: name, At: time.Now(), Term: term + 1, Token: role.MakeToken(1, term+1), ClaimedUS: &us}); err != nil {
			t.Fatal(err)
		}
	}
	all := terms(t, h, "")
	if len(all) < 6 || all[len(all)-1] != 40 {
		t.Fatalf("%v", all)
	}
	for i := 1; i < len(all); i++ {
		if all[i] != all[i-1]+1 {
			t.Errorf("a gap or another order: %v", all)
		}
	}
	if kv := terms(t, h, "kv"); len(kv) < len(all)/2-1 || kv[0]%2 != 1 {
		t.Errorf("of one role: %v of %v", kv, all)
	}
	if records, _ := h.read("kv"); records[0].ClaimedUS == nil || *records[0].ClaimedUS != us || records[0].DetectedUS != nil {
		t.Errorf("%+v", records[0])
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
	files, _ := filepath.Glob(path + "*")
	if want := []string{path, path + ".1", path + ".2", path + ".3"}; !slices.Equal(files, want) {
		t.Errorf("files %v, want %v", files, want)
	}
}

// TestHistorySurvivesDamage: what a power cut leaves is left out, told, and
// spoils no other record.
func TestHistorySurvivesDamage(t *testing.T) {
	for name, damage := range map[string]string{
		"half a line":    `{"role":"kv","te`,
		"zeros":          strings.Repeat("\x00", 3000),
		"a line of junk": strings.Repeat("x", historyLine+5000),
		"another object": `{"a":1}`,
	} {
		dir := t.TempDir()
		path := historyPath(dir)
		h, err := openHistory(path)
		if err != nil {
			t.Fatal(err)
		}
		h.append(entry(1))
		h.close()
		f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		f.WriteString(damage)
		f.Close()
		if h, err = openHistory(path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !h.torn {
			t.Errorf("%s: nobody is told", name)
		}
		if err := h.append(entry(2)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := terms(t, h, "kv"); !slices.Equal(got, []uint64{1, 2}) {
			t.Errorf("%s: %v", name, got)
		}
		h.close()
		if records, damaged, err := ReadHistory(dir, ""); err != nil || len(records) != 2 || damaged != 1 {
			t.Errorf("%s: %d records, %d damaged, %v", name, len(records), damaged, err)
		}
		if h, err = openHistory(path); err != nil || h.torn {
			t.Errorf("%s: told again: %v", name, err)
		}
		h.close()
	}
}

// TestHistoryOnAFullDisk: what the disk does not take is kept, told once, and
// written in order when there is space.
func TestHistoryOnAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	h.append(entry(1))
	disk := h.file
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	h.file = full
	if err := h.append(entry(2)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the first one that it does not take: %v", err)
	}
	for term := range uint64(historyOwed) {
		if err := h.append(entry(term + 3)); err != nil {
			t.Fatalf("told again: %v", err)
		}
	}
	if got := terms(t, h, ""); got[0] != 1 || got[len(got)-1] != historyOwed+2 || len(got) != historyOwed+1 {
		t.Errorf("%d records meanwhile, %d to %d", len(got), got[0], got[len(got)-1])
	}
	h.file = disk
	full.Close()
	if err := h.append(entry(5000)); err != nil {
		t.Error(err)
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
	records, damaged, err := readHistory(path, historyKeep, "")
	if err != nil || damaged != 0 || len(records) != historyOwed+1 || records[0].Term != 1 || records[len(records)-1].Term != 5000 {
		t.Errorf("%d records, %d damaged, %v", len(records), damaged, err)
	}
}

// TestRemovedHistoryIsBegunAgain: nothing is written to a file without a name.
func TestRemovedHistoryIsBegunAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := openHistory(historyPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	for term, remove := range []string{"", historyPath(dir), dir} {
		if remove != "" {
			if err := os.RemoveAll(remove); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.append(entry(uint64(term))); err != nil {
			t.Error(err)
		}
		if got := terms(t, h, "kv"); !slices.Equal(got, []uint64{uint64(term)}) {
			t.Errorf("after %q was removed: %v", remove, got)
		}
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
}

// TestHistoryThatCannotRotate goes on in the file that it has.
func TestHistoryThatCannotRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	h.most = 1
	if err := os.Mkdir(path+".new", 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	told := 0
	for term := range uint64(5) {
		if h.append(entry(term)) != nil {
			told++
		}
	}
	if got := terms(t, h, ""); len(got) != 5 || told != 1 {
		t.Errorf("%v, told %d times", got, told)
	}
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
	h.append(entry(5))
	if got := fmt.Sprint(terms(t, h, "")); got != "[0 1 2 3 4 5]" || len(h.owed) != 0 {
		t.Errorf("%s, %d owed", got, len(h.owed))
	}
}

// TestDamagedHistoryIsSaid: lines that are no records, and half records, are
// neither shown nor passed over in silence.
func TestDamagedHistoryIsSaid(t *testing.T) {
	c := newConfig(t, "good")
	path := historyPath(c.StateDir)
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("junk\n{\"role\":\"hello\"}\n{\"role\":\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, c)
	w.until("the role is full", full)
	if !slices.ContainsFunc(w.sup.RecentEvents(), func(e Event) bool {
		return e.Type == EventWarning && strings.Contains(e.Text, "damaged lines of the history in "+path+" that are left out: 3")
	}) {
		t.Error("there is no event of it")
	}
	damaged := func() int64 { return w.sup.Snapshot().Supervisor.DamagedHistory }
	if n := damaged(); n != 3 {
		t.Errorf("status counts %d", n)
	}
	if err := os.WriteFile(path, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if records, err := w.sup.History("kv"); err != nil || len(records) > 1 || damaged() != 1 {
		t.Errorf("%+v, %v, %d damaged", records, err, damaged())
	}
}
