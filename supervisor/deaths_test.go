package supervisor

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDeathsAreTheLastHundred(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv-0.jsonl")
	if deaths, _, err := readDeaths(path); err != nil || len(deaths) != 0 {
		t.Fatalf("no file: %v, %v", deaths, err)
	}
	at := time.Unix(1_700_000_000, 0).UTC()
	log := deathLog{path, -1}
	for i := range 3*keptDeaths + 7 {
		if i == 50 {
			log = deathLog{path, -1} // another supervisor goes on
		}
		if i == 60 { // half a line, as a crash leaves it
			f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			f.WriteString("\n" + `{"at":"20`)
			f.Close()
		}
		if err := log.add(Death{At: at, PID: i + 1, Cause: "x", Lines: []string{"a", "b"}}); err != nil {
			t.Fatal(err)
		}
		if want := min(i+1, keptDeaths); i%37 == 0 {
			if deaths, _, err := readDeaths(path); err != nil || len(deaths) != want || deaths[want-1].PID != i+1 {
				t.Fatalf("after %d: %d deaths, %v", i+1, len(deaths), err)
			}
		}
	}
	deaths, _, err := readDeaths(path)
	if err != nil || len(deaths) != keptDeaths {
		t.Fatalf("%d, %v", len(deaths), err)
	}
	for i, d := range deaths {
		if d.PID != 2*keptDeaths+8+i || len(d.Lines) != 2 {
			t.Fatalf("death %d: %+v", i, d)
		}
	}
	if info, _ := os.Stat(path); info.Size() > 100<<10 {
		t.Errorf("the file has %d bytes", info.Size())
	}
}

// TestDamagedDeaths are counted, and do not keep the next ones out.
func TestDamagedDeaths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv-0.jsonl")
	if err := os.WriteFile(path, append(make([]byte, 2<<20), "\n{}\n\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	log := deathLog{path, -1}
	if err := log.add(Death{At: time.Now(), PID: 7, Cause: "x"}); err != nil {
		t.Fatal(err)
	}
	if deaths, damaged, err := readDeaths(path); err != nil || damaged != 2 || len(deaths) != 1 || deaths[0].PID != 7 {
		t.Errorf("%+v, %d damaged, %v", deaths, damaged, err)
	}
}
