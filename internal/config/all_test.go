package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func problemKeys(t *testing.T, err error) (keys []string) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("%v, want Problems", err)
	}
	for _, p := range problems {
		keys = append(keys, p.Key)
	}
	return keys
}

// TestAllErrorsAreTold: what the supervisor itself refuses hides nothing, in
// whatever order it looks.
func TestAllErrorsAreTold(t *testing.T) {
	file := write(t, `[role.kv]
command = ["/bin/true"]
restart_on = ["SIGFOO", 3, 300, -1]
burst = 0
[role.kv.ready]
http = "ftp://x"
[role.kv.health]
tcp = "foo"
`)
	_, err := Load(file)
	want := []string{"role.kv.restart_on[0]", "role.kv.restart_on[2]", "role.kv.restart_on[3]", "role.kv.burst", "role.kv.ready.http", "role.kv.health.tcp"}
	if got := problemKeys(t, err); !slices.Equal(got, want) {
		t.Errorf("got %q\n%v", got, err)
	}
}

// TestTwoWaysHideNoFault of one of them: that one way is enough is told too.
func TestTwoWaysHideNoFault(t *testing.T) {
	file := write(t, `[role.kv]
command = ["/bin/true"]
ready = { exec = ["/bin/true"], http = "ftp://a" }
health = { tcp = "nothing", http = "http://127.0.0.1:80/" }
`)
	_, err := Load(file)
	want := []string{"role.kv.health.tcp", "role.kv.health.tcp", "role.kv.ready.exec", "role.kv.ready.http"}
	got := problemKeys(t, err)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %q\n%v", got, err)
	}
}

// TestBrokenPartHidesNoOther: what is no TOML is told beside the errors of the
// other files, and what it may have held is not missed.
func TestBrokenPartHidesNoOther(t *testing.T) {
	file := write(t, "[role.kv]\n")
	folder := filepath.Join(filepath.Dir(file), PartsFolder)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"10-a.toml": "[role.kv]\ntick = 5\n", "20-b.toml": "[role.kv\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Load(file)
	if got := problemKeys(t, err); len(got) != 2 || got[0] != "role.kv.tick" {
		t.Errorf("got %q\n%v", got, err)
	}
}

// TestFoldersThatAreNotTold: a daemon is not looked for in the default folder
// when the file was meant to name another one.
func TestFoldersThatAreNotTold(t *testing.T) {
	for text, want := range map[string]string{
		"[supervisor]\nruntime_dir = 5\n":                       "supervisor.runtime_dir",
		"[supervisor]\nruntim_dir = \"/tmp/x\"\nnice = \"x\"\n": "supervisor.runtim_dir",
		"[supervisor]\nruntime_dir = \"\"\n":                    "supervisor.runtime_dir",
		"runtime_dir = \"/tmp/x\"\n":                            "runtime_dir",
		"supervisor = 3\n":                                      "supervisor",
	} {
		_, _, err := FoldersOf(write(t, text))
		if got := problemKeys(t, err); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: %q\n%v", text, got, err)
		}
	}
}
