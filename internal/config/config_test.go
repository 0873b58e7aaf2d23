package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/standbyd/standbyd/internal/cgroup"
	"github.com/standbyd/standbyd/supervisor"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "standbyd.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func load(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Load(write(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const full = `
[supervisor]
log_level = "debug"
runtime_dir = "run"
state_dir = "/var/tmp/state"

[role.zeta]
command = ["sh", "-c", "sleep 1"]
workers = 4
tick = "50ms"
grace = 20
preempt = "priority"
proof = "exiting"
fence = "tree"
payload = 0
restart = "on-failure"
env = { A = "1", "B" = 'two "quoted" \ words' }
pass_env = ["DEBUG", "APP_*"]
umask = "027"
nice = 0
oom_score_adj = 500
no_new_privs = true
limit_nofile = 512
limit_core = 0
limit_as = "unlimited"
limit_nproc = "100:unlimited"
limit_memlock = "64KiB:1MiB"
stop_signal = "INT"
stop_timeout = "1m30s"
progress_timeout = "10s"
failovers = 60
log_max_size = "64MiB"
hints = ["curl http://{http}/"]

[[role.zeta.worker]]
index = 2
priority = -5
nofailover = true

[[role.zeta.listen]]
name = "http"
address = "127.0.0.1:8080"

[[role.zeta.listen]]
name = "local"
address = "./run/zeta.sock"

[[role.zeta.plugin]]
name = "snapshot"
command = ["./bin/standbyd-snapshot", "-v"]
env = { X = "y" }
config = { dir = "./data", every = "1m", keep = 5, ratio = 0.5, on = true, list = [1, 2], deep = { a = "b" }, at = 2026-01-02T03:04:05Z, day = 2026-01-02 }

[role.alpha]
command = ["./worker"]
`

func TestLoadFillsInEverything(t *testing.T) {
	file := write(t, full)
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	if c.Daemon.LogLevel != "debug" || c.Daemon.LogFormat != "text" || c.Daemon.RuntimeDir != filepath.Join(dir, "run") || c.Daemon.StateDir != "/var/tmp/state" {
		t.Errorf("daemon: %+v", c.Daemon)
	}
	if len(c.Roles) != 2 || c.Roles[0].Name != "zeta" || c.Roles[1].Name != "alpha" {
		t.Fatalf("roles are not in the order of the file: %+v", c.Roles)
	}
	zeta := c.Roles[0]
	want := supervisor.DefaultRole()
	want.Name, want.Dir = "zeta", dir
	want.Command = []string{"sh", "-c", "sleep 1"}
	want.Workers, want.Tick, want.Grace = 4, 50*time.Millisecond, 20
	want.Preempt, want.Proof, want.Fence, want.Payload = "priority", "exiting", "tree", 0
	want.Restart, want.StopSignal, want.StopTimeout = "on-failure", "INT", 90*time.Second
	want.ProgressTimeout, want.Failovers, want.LogMaxBytes = 10*time.Second, 60, 64<<20
	want.Env = map[string]string{"A": "1", "B": `two "quoted" \ words`}
	want.PassEnv = []string{"DEBUG", "APP_*"}
	number := func(n int) *int { return &n }
	limit := func(soft, hard uint64) *supervisor.Limit { return &supervisor.Limit{Soft: soft, Hard: hard} }
	want.Confine = supervisor.Confinement{
		Umask: number(0o27), Nice: number(0), OOMScoreAdj: number(500), NoNewPrivs: true,
		NoFile: limit(512, 512), Core: limit(0, 0), AS: limit(supervisor.Unlimited, supervisor.Unlimited),
		NProc: limit(100, supervisor.Unlimited), MemLock: limit(64<<10, 1<<20),
	}
	want.WorkerOptions = map[int]supervisor.WorkerOptions{2: {Priority: -5, NoFailover: true}}
	want.Listen = []supervisor.ListenConfig{
		{Name: "http", Network: "tcp", Address: "127.0.0.1:8080"},
		{Name: "local", Network: "unix", Address: filepath.Join(dir, "run/zeta.sock")},
	}
	if !reflect.DeepEqual(zeta.RoleConfig, want) {
		t.Errorf("zeta:\ngot  %+v\nwant %+v", zeta.RoleConfig, want)
	}
	if p := zeta.Plugins[0]; p.Name != "snapshot" || p.Command[0] != filepath.Join(dir, "bin/standbyd-snapshot") || p.Command[1] != "-v" ||
		p.Env["X"] != "y" || p.Table["keep"] != int64(5) || p.Table["dir"] != "./data" {
		t.Errorf("plugin: %+v", p)
	}
	if alpha := c.Roles[1]; alpha.Command[0] != filepath.Join(dir, "worker") || alpha.Workers != 3 {
		t.Errorf("alpha: %+v", alpha)
	}
	if s := c.Supervisor(); s.ConfigFile != file || len(s.Roles) != 2 || s.RuntimeDir != c.Daemon.RuntimeDir {
		t.Errorf("supervisor config: %+v", s)
	}
}

func TestEffectiveConfigReadsBackTheSame(t *testing.T) {
	first := load(t, full)
	var printed bytes.Buffer
	if err := first.Print(&printed); err != nil {
		t.Fatal(err)
	}
	second, err := Load(write(t, printed.String()))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, printed.String())
	}
	for i := range first.Roles { // dir is printed, so it does not follow the second file
		hide(first.Roles[i].Env, first.Roles[i].EnvTable)
		for _, p := range first.Roles[i].Plugins {
			hide(p.Env)
		}
		if !reflect.DeepEqual(first.Roles[i], second.Roles[i]) {
			t.Errorf("role %d:\nfirst  %+v\nsecond %+v", i, first.Roles[i], second.Roles[i])
		}
	}
	if first.Daemon != second.Daemon {
		t.Errorf("daemon: first %+v, second %+v", first.Daemon, second.Daemon)
	}
	var again bytes.Buffer
	sources := regexp.MustCompile(`  +# .*`) // those differ, of course
	if err := second.Print(&again); err != nil || sources.ReplaceAllString(again.String(), "") != sources.ReplaceAllString(printed.String(), "") {
		t.Errorf("printed twice:\n%s\nand:\n%s", printed.String(), again.String())
	}
}

// hide makes values what the effective config shows of them.
func hide(tables ...map[string]string) {
	for _, table := range tables {
		for name := range table {
			table[name] = "***"
		}
	}
}

// TestSecretsAreNotPrinted: neither from the file nor from env_file, and not
// in a message about a line that is wrong.
func TestSecretsAreNotPrinted(t *testing.T) {
	file := write(t, "[role.kv]\ncommand = [\"sh\"]\nenv_file = \"kv.env\"\nenv = { TOKEN = \"hunter2\" }\n")
	secrets := filepath.Join(filepath.Dir(file), "kv.env")
	if err := os.WriteFile(secrets, []byte("PASSWORD=hunter2\nTOKEN=hunter2\nA=hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Roles[0].Env["PASSWORD"] != "hunter2" {
		t.Fatalf("workers get %v", c.Roles[0].Env)
	}
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil {
		t.Fatal(err)
	}
	text := printed.String()
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "\nenv.TOKEN = \"***\"") || !strings.Contains(text, "\n# env.PASSWORD = \"***\" ") || strings.Contains(text, "\n# env.TOKEN") {
		t.Errorf("printed:\n%s", text)
	}
	if err := os.WriteFile(secrets, []byte("hunter2\n1=hunter2\nNOTIFY_SOCKET=hunter2\nX=hunter2\x00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error: %v", err)
	}
}

// TestLimitsThatThisMachineRefuses: check says so, at the key, and so does the
// supervisor.
func TestLimitsThatThisMachineRefuses(t *testing.T) {
	for key, value := range map[string]string{"memory_max": `"1GiB"`, "cpu_max": `"150%"`, "pids_max": "100"} {
		_, err := Load(write(t, "[role.kv]\ncommand = [\"sh\"]\n"+key+" = "+value+"\n"))
		limits := map[string]cgroup.Limits{"memory_max": {Memory: 1}, "cpu_max": {CPU: 1}, "pids_max": {PIDs: 1}}[key]
		if cgroup.Available(limits.Controllers()) == nil {
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), ":3:") || !strings.Contains(err.Error(), "role.kv."+key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestEveryKeyIsPrinted catches a key whose show forgets what read stored.
func TestEveryKeyIsPrinted(t *testing.T) {
	var printed bytes.Buffer
	c := load(t, full)
	c.Roles[0].User, c.Roles[0].Group, c.Roles[0].EnvFile = "root", "root", "/dev/null"
	c.Daemon.MetricsAddress, c.Daemon.ControlGroup = "127.0.0.1:9464", "root"
	c.Roles[0].Plugins[0].SHA256 = strings.Repeat("a", 64)
	c.Roles[0].Confine.MemoryMax, c.Roles[0].Confine.CPUMax, c.Roles[0].Confine.PIDsMax = 1<<30, 150, 100
	if err := c.Print(&printed); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{keyNames(daemonKeys), keyNames(roleKeys), keyNames(workerKeys), keyNames(listenKeys), keyNames(pluginKeys)} {
		for _, name := range names {
			if !strings.Contains(printed.String(), "\n"+name+" = ") && !strings.Contains(printed.String(), "\n"+name+".") {
				t.Errorf("%s is not printed in:\n%s", name, printed.String())
			}
		}
	}
}

func TestEnvFileIsMergedBelowEnv(t *testing.T) {
	file := write(t, "[role.kv]\ncommand = [\"sh\"]\nenv_file = \"kv.env\"\nenv = { A = \"table\" }\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "kv.env"),
		[]byte("# comment\nA=file\nexport B=\"two words\"\nC='x=y'\n\nD=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"A": "table", "B": "two words", "C": "x=y", "D": ""}
	if got := c.Roles[0].Env; !reflect.DeepEqual(got, want) {
		t.Errorf("env = %v, want %v", got, want)
	}
	if got := c.Roles[0].EnvTable; len(got) != 1 {
		t.Errorf("env table = %v", got)
	}
}

func TestWarningsStopNothing(t *testing.T) {
	c := load(t, `
[role.a]
command = ["./missing"]
workers = 1
tick = "1ms"
[role.b]
command = ["no-such-program-anywhere"]
preempt = "priority"
dir = "nowhere"
ready.exec = ["/no/such/probe"]
health.interval = "1s"
`)
	var all strings.Builder
	for _, w := range c.Warnings {
		all.WriteString(w.String() + "\n")
	}
	for _, want := range []string{
		"role.a.command[0]: ", "missing does not exist (yet)",
		"there is no standby", "busy Go worker",
		`there is no program "no-such-program-anywhere" in PATH`,
		"no [[role.b.worker]] has a priority", "nowhere is not a folder",
		"role.b.ready.exec[0]: /no/such/probe does not exist (yet)", "role.b.health: asks nothing",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no warning with %q in:\n%s", want, all.String())
		}
	}
}

func TestFoldersOfBrokenFile(t *testing.T) {
	file := write(t, "[supervisor]\nruntime_dir = \"r\"\nstate_dir = \"/s\"\n[role.kv]\nno_such_key = 1\n")
	run, state, err := FoldersOf(file)
	if want := filepath.Join(filepath.Dir(file), "r"); err != nil || run != want || state != "/s" {
		t.Errorf("FoldersOf = %q, %q, %v; want %q and /s", run, state, err, want)
	}
	if _, _, err := FoldersOf(filepath.Join(t.TempDir(), "none.toml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestBlameFindsThePlace(t *testing.T) {
	c := load(t, "[role.kv]\ncommand = [\"sh\"]\n[[role.kv.listen]]\nname = \"http\"\naddress = \"127.0.0.1:80\"\n")
	p, ok := c.Blame(fmt.Errorf("run: %w", &supervisor.ConfigError{Role: "kv", Field: "listen[0].address", Msg: "taken"}))
	if !ok || p.Line != 5 || p.Col != 11 || p.Key != "role.kv.listen.address" || p.Msg != "taken" {
		t.Errorf("Blame = %+v, %t", p, ok)
	}
	if p, ok := c.Blame(errors.New("other")); ok {
		t.Errorf("blamed %+v for an error about no setting", p)
	}
}

// TestEveryKeyHasAPlace compares the locator with the decoder's own list.
func TestEveryKeyHasAPlace(t *testing.T) {
	documents := []string{full, `
# comment with [brackets] and "quotes
a.b . "c d" = 1 # trailing = comment
"q\"uote" = 'lit\eral'
multi = """
[not.a.table]
key = "x" \"""
"""
raw = '''
it's
'''
list = [ [1, 2], # one
  ["a,]", 'b#'], { x = 1, y.z = [ { w = "}" } ] },
]
inline = {a={b={c=1}}, d = "e"}
date = 1979-05-27 07:32:00
empty = []
none = {}

[t . "u v" ]
k = 1
[[arr.of]]
n = 1
[[arr.of]]
n = 2
[arr.of.sub]
m = 3
[[arr.of.deep]]
d = 1
[[arr.of.deep]]
d = 2
`}
	for _, text := range documents {
		var out map[string]any
		if _, err := toml.Decode(text, &out); err != nil {
			t.Fatal(err)
		}
		at := locate(0, text)
		walk("", out, func(path string, leaf bool) {
			if _, ok := at.keys[path]; !ok {
				t.Errorf("no place of key %s", path)
			}
			if _, ok := at.values[path]; leaf && !ok {
				t.Errorf("no place of value %s", path)
			}
		})
	}
	at := locate(0, documents[1])
	for path, want := range map[string]place{
		`a.b."c d"`:                {0, 3, 7},
		"multi":                    {0, 5, 1},
		"raw":                      {0, 9, 1},
		"list[2].y.z[0].w":         {0, 13, 37},
		"arr.of[1].n":              {0, 25, 1},
		"arr.of[1].deep[1].d":      {0, 31, 1},
		`"q\"uote"`:                {0, 4, 1},
		"inline.a.b.c":             {0, 15, 17},
		"date":                     {0, 16, 1},
		"arr.of[1].sub.m":          {0, 27, 1},
		`t."u v".k`:                {0, 21, 1},
		"list[1][1]":               {0, 13, 11},
		"arr.of[0].n":              {0, 23, 1},
		"arr.of[1].deep[0].d":      {0, 29, 1},
		"arr.of[1].deep[0].absent": {},
	} {
		if got := at.keys[path]; got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
}

func walk(path string, v any, visit func(path string, leaf bool)) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			p := joinPath(path, k)
			_, table := e.(map[string]any)
			_, tables := e.([]map[string]any)
			visit(p, !table && !tables)
			walk(p, e, visit)
		}
	case []map[string]any:
		for i, e := range v {
			visit(indexPath(path, i), false)
			walk(indexPath(path, i), e, visit)
		}
	case []any:
		for i, e := range v {
			visit(indexPath(path, i), true)
			walk(indexPath(path, i), e, visit)
		}
	}
}

// FuzzLoad: whatever the text, Load ends, and an error of the text is Problems.
func FuzzLoad(f *testing.F) {
	f.Add(full)
	files, _ := filepath.Glob("testdata/broken/*.toml")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Load(write(t, text))
		if err != nil {
			if _, ok := err.(Problems); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var printed bytes.Buffer
		if err := c.Print(&printed); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(write(t, printed.String())); err != nil {
			t.Fatalf("the effective config is broken: %v\n%s", err, printed.String())
		}
	})
}

func TestNearest(t *testing.T) {
	names := keyNames(roleKeys)
	for got, want := range map[string]string{
		"wokers": "workers", "worker_count": "", "Tick": "tick", "stop-timeout": "stop_timeout",
		"stoptimeout": "stop_timeout", "failover": "failovers", "cmd": "", "commnad": "command", "x": "", "": "",
		"environment": "env", "restartdelay": "restart_delay",
	} {
		if n := nearest(got, names); n != want {
			t.Errorf("nearest(%q) = %q, want %q", got, n, want)
		}
	}
}

func TestRuntimeDirOfBroken(t *testing.T) {
	for text, want := range map[string]string{
		"[supervisor]\nruntime_dir = \"r\" # here\n[role.kv\n":      "r",
		"[supervisor]\nruntime_dir = 'r'\nlog_level = info\n":       "r",
		"supervisor.runtime_dir = \"r\"\n= 1\n":                     "r",
		"[supervisor]\nlog_level = info\n":                          "default",
		"#runtime_dir = \"r\"\n= 1\n":                               "default",
		"[supervisor]\nruntime_dir = r\n":                           "",
		"[supervisor]\nruntime_dir = \"r\n":                         "",
		"[role.kv]\nruntime_dir = \"r\"\n= 1\n":                     "",
		"[supervisor]\nruntime_dir = \"r\"\nruntime_dir = \"s\"\n":  "",
		"x = \"\"\"\n[supervisor]\nruntime_dir = \"r\"\n":           "",
		"[role.kv]\nenv = { runtime_dir = \"r\" }\n[supervisor]\n=": "",
	} {
		file := write(t, text)
		dir, told := RuntimeDirOfBroken(file)
		switch want {
		case "r":
			want = filepath.Join(filepath.Dir(file), "r")
		case "default":
			want = DefaultRuntimeDir()
		}
		if dir != want || told != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, dir, told, want)
		}
	}
}

func TestSignalWithItsPrefixAndHints(t *testing.T) {
	c, err := Load(write(t, "[role.kv]\ncommand = [\"sh\"]\nstop_signal = \"SIGINT\"\nhints = [\"curl {http} ${HOME} {}\"]\n[[role.kv.listen]]\nname = \"http\"\naddress = \":0\"\n"))
	if err != nil || c.Roles[0].StopSignal != "INT" {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = Load(write(t, "[role.kv]\ncommand = [\"sh\"]\nhints = [\"curl {htp}\"]\n[[role.kv.listen]]\nname = \"http\"\naddress = \":0\"\n"))
	if err == nil || !strings.Contains(err.Error(), "{htp} is no listener") || !strings.Contains(err.Error(), `did you mean "http"`) {
		t.Errorf("an unknown name in a hint: %v", err)
	}
}
