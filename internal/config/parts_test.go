package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inFolder writes files into a new folder, which becomes the working directory.
func inFolder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// sources are "value from" by key.
func sources(t *testing.T, c *Config) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range c.Settings() {
		out[s.Key] = tomlValue(s.Value) + " " + s.source()
	}
	return out
}

// TestPartsAreOneConfig: roles, settings, tables and lists of tables of several
// files, each with the place where it stands.
func TestPartsAreOneConfig(t *testing.T) {
	inFolder(t, map[string]string{
		"main.toml": `
[supervisor]
log_level = "debug"
[role.kv]
command = ["./worker"]
env = { A = "1" }
[[role.kv.listen]]
name = "http"
address = "127.0.0.1:8080"
`,
		"config.d/20-web.toml": `
[role.web]
command = ["sh"]
env_file = "web.env"
[[role.kv.listen]]
name = "admin"
address = "127.0.0.1:8081"
`,
		"config.d/10-kv.toml": `
role.kv.workers = 5
[role.kv.env]
B = "2"
[[role.kv.listen]]
name = "metrics"
address = "127.0.0.1:8082"
[[role.kv.worker]]
index = 4
priority = 7
`,
		"web.env":                   "# comment\nTOKEN=hunter2\n",
		"config.d/.#10-kv.toml":     "no = config",
		"config.d/.hidden.toml":     "= = =",
		"config.d/10-kv.toml~":      "= = =",
		"config.d/#10-kv.toml#":     "= = =",
		"config.d/10-kv.toml.bak":   "= = =",
		"config.d/README":           "= = =",
		"config.d/sub/another.toml": "= = =",
	})
	c, err := Load("main.toml")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"main.toml", "config.d/10-kv.toml", "config.d/20-web.toml"}; !slices.Equal(c.Files, want) {
		t.Errorf("files %q, want %q", c.Files, want)
	}
	if len(c.Roles) != 2 || c.Roles[0].Name != "kv" || c.Roles[1].Name != "web" {
		t.Fatalf("roles %+v", c.Roles)
	}
	here, _ := os.Getwd()
	if kv := c.Roles[0]; kv.Workers != 5 || kv.Env["A"] != "1" || kv.Env["B"] != "2" || kv.WorkerOptions[4].Priority != 7 || c.Roles[1].Dir != here {
		t.Errorf("kv is %+v, web %+v", kv, c.Roles[1])
	}
	got := sources(t, c)
	for key, want := range map[string]string{
		"supervisor.log_level":       `"debug" main.toml:3`,
		"supervisor.log_format":      `"text" default`,
		"role.kv.workers":            `5 config.d/10-kv.toml:2`,
		"role.kv.grace":              `10 default`,
		"role.kv.env.A":              `"***" main.toml:6`,
		"role.kv.env.B":              `"***" config.d/10-kv.toml:4`,
		"role.kv.listen[0].address":  `"127.0.0.1:8080" main.toml:9`,
		"role.kv.listen[1].address":  `"127.0.0.1:8082" config.d/10-kv.toml:7`,
		"role.kv.listen[2].address":  `"127.0.0.1:8081" config.d/20-web.toml:7`,
		"role.kv.listen[2].network":  `"tcp" default`,
		"role.kv.worker[0].priority": `7 config.d/10-kv.toml:10`,
		"role.web.command":           `["sh"] config.d/20-web.toml:3`,
		"role.web.env.TOKEN":         `"***" ` + here + `/web.env:2`,
	} {
		if got[key] != want {
			t.Errorf("%s = %s, want %s", key, got[key], want)
		}
	}
}

// TestBrokenParts: each error names the file, the line and the key that is to
// be mended.
func TestBrokenParts(t *testing.T) {
	const main = "[role.kv]\ncommand = [\"sh\"]\nworkers = 2\n[[role.kv.listen]]\nname = \"http\"\naddress = \":8080\"\n"
	for name, c := range map[string]struct {
		a, b string
		want []string
	}{
		"set twice": {"[role.kv]\nworkers = 3\n", "", []string{
			`config.d/a.toml:2:1: role.kv.workers: is set in main.toml:3 already; a key is set once: remove one of the two`}},
		"set twice in parts": {"role.kv.grace = 5\n", "[role.kv]\ngrace = 5\n", []string{
			`config.d/b.toml:2:1: role.kv.grace: is set in config.d/a.toml:1 already; a key is set once: remove one of the two`}},
		"a variable twice": {"role.kv.env.A = \"1\"", "role.kv.env = { A = \"1\" }", []string{
			`config.d/b.toml:1:17: role.kv.env.A: is set in config.d/a.toml:1 already; a key is set once: remove one of the two`}},
		"a list twice": {"role.kv.hints = []", "role.kv.hints = [\"x\"]", []string{
			`config.d/b.toml:1:9: role.kv.hints: is set in config.d/a.toml:1 already; a key is set once: remove one of the two`}},
		"a table and a value": {"[role.kv.workers]\nx = 1\n", "", []string{
			`config.d/a.toml:1:1: role.kv.workers: is set in main.toml:3 already; a key is set once: remove one of the two`}},
		"a name twice": {"[[role.kv.listen]]\nname = \"http\"\naddress = \":8081\"\n", "", []string{
			`config.d/a.toml:2:8: role.kv.listen[1].name: "http" is already the name of the listener in main.toml:5`}},
		"an address twice": {"", "[[role.kv.listen]]\nname = \"web\"\naddress = \":8080\"\n", []string{
			`config.d/b.toml:3:11: role.kv.listen[1].address: ":8080" is taken by role.kv.listen[0].address (":8080", main.toml:6)`}},
		"a wrong value in a list that goes on": {"[[role.kv.listen]]\nname = \"a\"\naddress = \":1\"\n", "[[role.kv.listen]]\nname = \"b\"\naddress = 7\n", []string{
			`config.d/b.toml:3:11: role.kv.listen[2].address: is the integer 7; write a string`}},
		"the supervisor": {"[supervisor]\nlog_level = \"info\"\n", "", []string{
			`config.d/a.toml:1:1: supervisor: stands in main.toml alone: the daemon is found by it; a part holds tables [role.NAME]`}},
		"no such table": {"[roles.kv]\nx = 1\n", "", []string{
			`config.d/a.toml:1:1: roles: unknown table; there is [role.NAME]; did you mean "role"?`}},
		"no TOML, in two": {"x = \n", "[role.kv\n", []string{
			`config.d/a.toml:1:5: `, `config.d/b.toml:1:9: `}},
		"relations": {"role.kv.stop_timeout = \"1s\"\n", "", []string{
			`config.d/a.toml:1:24: role.kv.stop_timeout: stop_timeout (1s) is below drain_timeout (5s): a leader would be killed while it drains`}},
		"no command": {"", "[role.web]\nworkers = 1\n", []string{
			`config.d/b.toml:1:1: role.web: has no command; add command = ["./bin/worker"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			inFolder(t, map[string]string{"main.toml": main, "config.d/a.toml": c.a, "config.d/b.toml": c.b})
			_, err := Load("main.toml")
			var problems Problems
			if !errors.As(err, &problems) || len(problems) != len(c.want) {
				t.Fatalf("%v; want %d problems", err, len(c.want))
			}
			for i, p := range problems {
				if !strings.HasPrefix(p.String(), c.want[i]) {
					t.Errorf("got  %s\nwant %s", p, c.want[i])
				}
			}
		})
	}
}

// TestPartsThatCannotBeRead are errors, a folder that is not there is none.
func TestPartsThatCannotBeRead(t *testing.T) {
	const main = "[role.kv]\ncommand = [\"sh\"]\n"
	for name, c := range map[string]struct {
		prepare func() error
		want    string
	}{
		"a folder in place of a file": {func() error { return os.MkdirAll("config.d/x.toml", 0o755) }, "config.d/x.toml: cannot be read: it is a folder"},
		"a dead link": {func() error {
			return errors.Join(os.Mkdir("config.d", 0o755), os.Symlink("gone", "config.d/x.toml"))
		}, "config.d/x.toml: cannot be read: no such file"},
		"a file in place of the folder": {func() error { return os.WriteFile("config.d", nil, 0o600) }, "config.d: cannot be read: not a directory"},
		"the folder is a dead link":     {func() error { return os.Symlink("gone", "config.d") }, "config.d: cannot be read: no such file"},
		"no right to": {func() error {
			return errors.Join(os.Mkdir("config.d", 0o755), os.WriteFile("config.d/x.toml", nil, 0))
		}, "config.d/x.toml: cannot be read: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no right to" && os.Getuid() == 0 {
				t.Skip("root may read everything")
			}
			inFolder(t, map[string]string{"main.toml": main})
			if _, err := Load("main.toml"); err != nil {
				t.Fatalf("without config.d: %v", err)
			}
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			_, err := Load("main.toml")
			var problems Problems
			if !errors.As(err, &problems) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestAllRolesInParts: the main file may be empty, and the daemon's folders are
// found without the parts.
func TestAllRolesInParts(t *testing.T) {
	inFolder(t, map[string]string{"main.toml": "", "config.d/kv.toml": "[role.kv]\ncommand = [\"sh\"]\n"})
	c, err := Load("main.toml")
	if err != nil || len(c.Roles) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := os.WriteFile("config.d/broken.toml", []byte("= ="), 0o600); err != nil {
		t.Fatal(err)
	}
	if run, _, err := FoldersOf("main.toml"); err != nil || run != DefaultRuntimeDir() {
		t.Errorf("with a broken part: %s, %v", run, err)
	}
}

// TestDefaultsFromTheEnvironment: a folder that a variable decides says so.
func TestDefaultsFromTheEnvironment(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/tmp/xdg")
	t.Setenv("XDG_STATE_HOME", "")
	c := load(t, "[role.kv]\ncommand = [\"sh\"]\n")
	got := sources(t, c)
	want := [2]string{`"/tmp/xdg/standbyd" env XDG_RUNTIME_DIR`, tomlValue(DefaultStateDir()) + " env HOME"}
	if os.Getuid() == 0 { // root's folders are fixed
		want = [2]string{`"/run/standbyd" default`, `"/var/lib/standbyd" default`}
	}
	if got["supervisor.runtime_dir"] != want[0] || got["supervisor.state_dir"] != want[1] {
		t.Errorf("%s and %s, want %q", got["supervisor.runtime_dir"], got["supervisor.state_dir"], want)
	}
}

// TestFoldersThatCannotBeHad: run would fail, so check says so.
func TestFoldersThatCannotBeHad(t *testing.T) {
	inFolder(t, map[string]string{
		"main.toml": "[supervisor]\nruntime_dir = \"file/run\"\nstate_dir = \"file\"\n[role.kv]\ncommand = [\"sh\"]\n", "file": "",
	})
	here, _ := os.Getwd()
	_, err := Load("main.toml")
	want := "main.toml:2:15: supervisor.runtime_dir: " + here + "/file is a file, not a folder\nmain.toml:3:13: supervisor.state_dir: " + here + "/file is a file, not a folder"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	if err := os.Mkdir("shut", 0o555); err != nil {
		t.Fatal(err)
	}
	inFolderText := "[supervisor]\nruntime_dir = \"shut/run\"\nstate_dir = \"shut\"\n[role.kv]\ncommand = [\"sh\"]\n"
	if err := os.WriteFile("main.toml", []byte(inFolderText), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load("main.toml")
	if err != nil || len(c.Warnings) != 2 || c.Warnings[0].Key != "supervisor.runtime_dir" || !strings.Contains(c.Warnings[1].Msg, "may not write into") {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestFoldersThatOthersMayWriteTo: the same of folders that run would refuse.
func TestFoldersThatOthersMayWriteTo(t *testing.T) {
	inFolder(t, map[string]string{
		"main.toml": "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n[role.kv]\ncommand = [\"sh\"]\n",
	})
	here, _ := os.Getwd()
	for _, name := range []string{"run", "state"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load("main.toml"); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"run": os.ModeSticky | 0o777, "state": 0o770} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Load("main.toml")
	want := "main.toml:2:15: supervisor.runtime_dir: " + here + "/run (drwxrwxrwt) must be a folder that only its owner may write to; `chmod go-w " + here + "/run`, if nobody else uses it\n" +
		"main.toml:3:13: supervisor.state_dir: " + here + "/state (drwxrwx---) must be a folder that only its owner may write to; `chmod go-w " + here + "/state`, if nobody else uses it"
	if err == nil || err.Error() != want {
		t.Errorf("it says %v, want %v", err, want)
	}
}
