package filelease

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// watches are the records that time is judged about by watching: since when
// they are unchanged, by the reader's own clock.
type watches struct {
	mu    sync.Mutex
	since map[string]sighting // by key
	ttl   map[string]time.Duration
}

// sighting is the first time that this content was seen.
type sighting struct {
	Sum    string `json:"sum"`
	Boot   id     `json:"boot"`
	TimeNS uint64 `json:"timens"`
	Since  int64  `json:"since_boottime_ns"`
}

// left is how long the record must still be watched. What was seen by a
// claimant is kept in KEY.seen, so that a program that tries and ends at once,
// as those of cron do, comes to an end of it too; only a claimant's wish is
// worth a write. It is no more than a memory: without it, watching begins anew.
func (w *watches) left(s *Store, key string, f found, p probe, remember bool) time.Duration {
	now := s.clock.Boottime()
	sum := sumOf(f, p)
	w.mu.Lock()
	defer w.mu.Unlock()
	ttl := max(f.ttl, w.ttl[key])
	if ttl == 0 {
		ttl = s.ttl
	}
	seen, ok := w.since[key]
	if !ok || seen.Sum != sum || int64(now) < seen.Since {
		seen = sighting{Sum: sum, Boot: id(s.boot), TimeNS: s.timens, Since: int64(now)}
		if kept, ok := s.keptSighting(key); ok && kept.Sum == sum && kept.Since <= int64(now) {
			seen = kept
		} else if remember {
			s.keepSighting(key, seen)
		}
		w.since[key] = seen
	}
	return ttl - (now - time.Duration(seen.Since))
}

// note keeps the TTL of a record that could be read, for when it cannot be.
func (w *watches) note(key string, ttl time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ttl[key] = ttl
}

// sumOf changes with every rewriting of the record, also with the same bytes.
func sumOf(f found, p probe) string {
	h := sha256.New()
	h.Write(f.raw)
	if f.info != nil {
		fmt.Fprintf(h, "|%d|%d", f.info.ModTime().UnixNano(), f.number)
	} else {
		fmt.Fprintf(h, "|missing|%d", p.number)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// keptSighting is what an earlier process of this boot remembered. Only with
// the system's clock: no other one is shared between processes.
func (s *Store) keptSighting(key string) (sighting, bool) {
	var kept sighting
	if _, system := s.clock.(systemClock); !system || s.boot == 0 {
		return kept, false
	}
	b, err := os.ReadFile(s.file(key, seenSuffix))
	if err != nil || json.Unmarshal(b, &kept) != nil {
		return kept, false
	}
	return kept, uint64(kept.Boot) == s.boot && kept.TimeNS == s.timens && kept.Since > 0
}

func (s *Store) keepSighting(key string, seen sighting) {
	if _, system := s.clock.(systemClock); !system || s.boot == 0 {
		return
	}
	b, err := json.Marshal(seen)
	if err != nil {
		return
	}
	// Half of it would not be JSON, and nothing is lost but time.
	os.WriteFile(s.file(key, seenSuffix), append(b, '\n'), 0o600)
}
