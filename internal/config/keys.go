package config

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standbyd/standbyd/supervisor"
)

// The keys of each section, in the order in which docs/config.md and the
// effective config show them. This is the one list: reading, the nearest key
// in messages, printing and the documentation all follow it.

const day = 24 * time.Hour

var daemonKeys = []key[Daemon]{
	choice("log_level", func(d *Daemon) *string { return &d.LogLevel }, []string{"trace", "debug", "info", "warn", "error"},
		"the least severe line that standbyd's own log shows"),
	choice("log_format", func(d *Daemon) *string { return &d.LogFormat }, []string{"text", "json"},
		"form of standbyd's own log, which goes to stderr"),
	described(path("runtime_dir", func(d *Daemon) *string { return &d.RuntimeDir },
		"folder of what lives until a reboot: control socket, segments, FIFOs; on a local file system, best a tmpfs; its path is short, because sockets below it may have 107 bytes"),
		"as root `/run/standbyd`; else `$XDG_RUNTIME_DIR/standbyd`, or `/tmp/standbyd-UID`"),
	described(path("state_dir", func(d *Daemon) *string { return &d.StateDir },
		"folder of what outlives a reboot: generations, history, logs of workers and plugins; another one than `runtime_dir`"),
		"as root `/var/lib/standbyd`; else `${XDG_STATE_HOME:-~/.local/state}/standbyd`"),
	text("metrics_address", func(d *Daemon) *string { return &d.MetricsAddress }, ownAddress,
		"`host:port` of this machine, such as `127.0.0.1:9464`, on which `/metrics`, `/ready`, `/live`, `/leader` and `/standby` answer everybody who can reach it; without it they are on the control socket alone"),
	account("control_group", func(d *Daemon) *string { return &d.ControlGroup },
		"group whose members may use the control socket too, by name or number; without it only root and standbyd's own user"),
	choice("control_access", func(d *Daemon) *string { return &d.ControlAccess }, []string{"read", "full"},
		"what members of `control_group` may do: look, or everything"),
	choice("cgroups", func(d *Daemon) *supervisor.CgroupMode { return &d.Cgroups },
		[]supervisor.CgroupMode{supervisor.CgroupsAuto, supervisor.CgroupsOff},
		"whether each worker gets a cgroup v2 of its own, where one can be made: by it all that a worker started is found and ended, and `memory_max` and its like are set"),
}

var roleKeys = slices.Concat(runKeys, confineKeys, keepKeys, healthKeys)

// runKeys say what runs and as whom, keepKeys how it is kept running.
var runKeys = []key[Role]{
	described(command("command", func(r *Role) *[]string { return &r.Command },
		"program and arguments of each worker; no shell is involved. A program with a slash is a path, one without is looked up in PATH"),
		"required"),
	integer("workers", func(r *Role) *int { return &r.Workers }, 1, 60,
		"identical workers to keep running: one leads, the others stand by"),
	described(path("dir", func(r *Role) *string { return &r.Dir },
		"working directory of the workers"),
		"the config file's folder"),
	environment("env", func(r *Role) *map[string]string { return &r.EnvTable },
		"environment variables of the workers, added to those of `pass_env` and to those that standbyd sets; their values are never shown"),
	path("env_file", func(r *Role) *string { return &r.EnvFile },
		"file with lines NAME=value, read when standbyd starts; `env` wins over it. Their values are never shown"),
	described(variables("pass_env", func(r *Role) *[]string { return &r.PassEnv },
		"variables of standbyd's own environment that workers get too, beside PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TZ, TMPDIR, SSL_CERT_FILE and SSL_CERT_DIR; `NAME*` is all that begin so"), "none"),
	account("user", func(r *Role) *string { return &r.User },
		"user to run the workers as, by name or number; needs root; empty is standbyd's own"),
	account("group", func(r *Role) *string { return &r.Group },
		"group to run the workers as; empty is the user's primary group"),
}

var keepKeys = []key[Role]{
	duration("tick", func(r *Role) *time.Duration { return &r.Tick }, time.Millisecond, time.Minute,
		"length of an epoch: how often the segment's clock ticks"),
	integer("grace", func(r *Role) *int { return &r.Grace }, 1, 1<<20,
		"epochs that a leader may be behind before it counts as hung; a hang is found after about tick x (grace + 1)"),
	choice("preempt", func(r *Role) *supervisor.Preempt { return &r.Preempt },
		[]supervisor.Preempt{supervisor.PreemptSticky, supervisor.PreemptLowestPID, supervisor.PreemptPriority},
		"when a standby may take the lease from a healthy leader: never, for a lower pid, or for a higher priority"),
	choice("proof", func(r *Role) *supervisor.Proof { return &r.Proof },
		[]supervisor.Proof{supervisor.ProofGone, supervisor.ProofExiting},
		"how dead the old leader must be: its memory, files and ports are released, or only: no code of it can run any more (faster with a large process)"),
	choice("fence", func(r *Role) *supervisor.Fence { return &r.Fence },
		[]supervisor.Fence{supervisor.FenceProcess, supervisor.FenceTree, supervisor.FenceToken},
		"what happens to a hung leader before the next one leads: its process is killed, its process tree is killed, or nothing (only for workers that check the token before every side effect)"),
	choice("scheduling", func(r *Role) *supervisor.Scheduling { return &r.Scheduling },
		[]supervisor.Scheduling{supervisor.SchedulingNormal, supervisor.SchedulingNice, supervisor.SchedulingFIFO},
		"how a worker's threads that wait for a leader's end and beat are scheduled: as all others, at nice -20, or under SCHED_FIFO, which keeps takeovers fast on a busy machine; the workers need CAP_SYS_NICE (root has it) or the limit `nice` or `rtprio`, and `status` shows under `protection` which of them lack it"),
	integer("payload", func(r *Role) *int { return &r.Payload }, 0, 4096,
		"bytes of shared payload in the role's segment"),

	choice("restart", func(r *Role) *supervisor.Restart { return &r.Restart },
		[]supervisor.Restart{supervisor.RestartAlways, supervisor.RestartOnFailure, supervisor.RestartNever},
		"when a worker that ended is started again; `on-failure`: not after exit status 0"),
	duration("restart_delay", func(r *Role) *time.Duration { return &r.RestartDelay }, 0, day,
		"first wait before a restart; doubled with each failure in a row, with jitter"),
	duration("restart_max_delay", func(r *Role) *time.Duration { return &r.RestartMaxDelay }, 0, day,
		"longest wait before a restart"),
	integer("burst", func(r *Role) *int { return &r.Burst }, 1, 1_000_000,
		"times that a worker may end within `burst_per` before it counts as failed and rests for `cool_down`"),
	duration("burst_per", func(r *Role) *time.Duration { return &r.BurstPer }, time.Millisecond, 30*day,
		"window in which `burst` counts"),
	duration("cool_down", func(r *Role) *time.Duration { return &r.CoolDown }, time.Millisecond, 30*day,
		"after which a failed worker, or a held role, is tried again by itself"),

	duration("start_timeout", func(r *Role) *time.Duration { return &r.StartTimeout }, time.Millisecond, 7*day,
		"from the start of a worker until it must have said that it is ready"),
	duration("stop_timeout", func(r *Role) *time.Duration { return &r.StopTimeout }, time.Millisecond, day,
		"from `stop_signal` until a worker that is still there is killed, with its process group"),
	withoutPrefix("SIG", choice("stop_signal", func(r *Role) *string { return &r.StopSignal },
		[]string{"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "KILL"},
		"signal that asks a worker to stop; `SIGTERM` is read as `TERM`")),
	duration("drain_timeout", func(r *Role) *time.Duration { return &r.DrainTimeout }, time.Millisecond, day,
		"from the end of a leader's term until its work for it must have returned; else the process ends itself"),
	duration("fence_timeout", func(r *Role) *time.Duration { return &r.FenceTimeout }, time.Millisecond, day,
		"how long a claimant waits for the proof that the old leader is dead before the role is held"),
	duration("progress_timeout", func(r *Role) *time.Duration { return &r.ProgressTimeout }, 0, day,
		"a leader that reports progress and then makes none for this long counts as hung; 0s is off"),

	integer("failovers", func(r *Role) *int { return &r.Failovers }, 1, 1_000_000,
		"leaders that may die or hang within `per` before the role is held, until `standbyd ack ROLE` or the cool-down; what is done by hand (switchover, failover, drill, signal) does not count"),
	duration("per", func(r *Role) *time.Duration { return &r.Per }, time.Millisecond, 30*day,
		"window in which `failovers` counts"),
	duration("probation", func(r *Role) *time.Duration { return &r.Probation }, 0, day,
		"a worker that fails as leader within this time of its promotion is the last one to be tried, whatever its priority, for as long again"),

	duration("hook_timeout", func(r *Role) *time.Duration { return &r.HookTimeout }, time.Millisecond, time.Hour,
		"limit of each call to a plugin; a tenth of it, at most 250 ms, is kept for ending a plugin that does not return, so the call itself has the rest"),
	choice("on_hook_failure", func(r *Role) *string { return &r.HookFailure }, []string{"keep", "demote"},
		"what a plugin that fails at a promotion costs: nothing but retries, or the leadership"),
	size("log_max_size", func(r *Role) *int64 { return &r.LogMaxBytes }, 4<<10, 1<<40,
		"size at which a worker's log is rotated"),
	duration("log_max_age", func(r *Role) *time.Duration { return &r.LogMaxAge }, 0, 3650*day,
		"age of its first line at which a worker's log is rotated; 0s is never"),
	boolean("log_compress", func(r *Role) *bool { return &r.LogCompress },
		"compress rotated logs with gzip, once the log is not rotated again within a second; `standbyd logs` reads both forms"),
	integer("log_keep", func(r *Role) *int { return &r.LogKeep }, 0, 1000,
		"rotated logs kept beside the current one"),
	lines("hints", func(r *Role) *[]string { return &r.Hints },
		"command lines that `standbyd run` shows at its start as things to try; `{NAME}` becomes the address of the listener NAME"),
}

var workerKeys = []key[Worker]{
	described(integer("index", func(w *Worker) *int { return &w.Index }, 0, 59,
		"the worker that is meant, counted from 0"), "required"),
	integer("priority", func(w *Worker) *int { return &w.Priority }, math.MinInt32, math.MaxInt32,
		"the ready standby with the highest priority goes first; among equals the one with the smaller lag, if workers tell theirs, then the one that joined first"),
	boolean("nofailover", func(w *Worker) *bool { return &w.NoFailover },
		"this worker leads only if `switchover` or `failover` names it"),
}

var listenKeys = []key[Listen]{
	described(text("name", func(l *Listen) *string { return &l.Name }, plainName,
		"how a worker asks for the socket"), "required"),
	described(text("address", func(l *Listen) *string { return &l.Address }, nil,
		"`host:port` or `:port`, or a path with a slash for a unix socket; port 0 takes a free one"), "required"),
	described(choice("network", func(l *Listen) *string { return &l.Network }, []string{"tcp", "udp", "unix"},
		"kind of socket; without it a unix socket if `address` has a slash, else tcp. Of a udp socket the leader alone reads; what arrives while nobody leads waits in its buffer"), "by `address`"),
}

var pluginKeys = []key[Plugin]{
	described(text("name", func(p *Plugin) *string { return &p.Name }, plainName,
		"the plugin's name in status, events and logs"), "required"),
	described(command("command", func(p *Plugin) *[]string { return &p.Command },
		"program and arguments of the plugin"), "required"),
	text("sha256", func(p *Plugin) *string { return &p.SHA256 }, hexDigest,
		"SHA-256 of the program, in hex; when set, a program with another one is not started"),
	environment("env", func(p *Plugin) *map[string]string { return &p.Env },
		"environment variables of the plugin, beside PATH, HOME, LANG, TZ and the like"),
	boolean("auto_mtls", func(p *Plugin) *bool { return &p.AutoMTLS },
		"encrypt the connection to the plugin with certificates made at each start, which takes about 20 ms more; without it the socket is guarded by its folder's mode 0700"),
	{name: "config", kind: "table", def: "none",
		doc: "settings of the plugin itself; the plugin checks them, see its own documentation. Relative paths in it start at the config file's folder",
		read: func(r *reader, n node, p *Plugin) {
			if t, ok := r.table(n, `config = { key = "value" }`); ok {
				p.Table = t
			}
		},
		show: func(p *Plugin) any {
			if len(p.Table) == 0 {
				return nil
			}
			return p.Table
		},
	},
}

// withoutPrefix also accepts a word with a prefix before it.
func withoutPrefix[T any](prefix string, k key[T]) key[T] {
	read := k.read
	k.read = func(r *reader, n node, into *T) {
		if v, ok := n.value.(string); ok {
			n.value = strings.TrimPrefix(v, prefix)
		}
		read(r, n, into)
	}
	return k
}

// described replaces the default that the documentation shows.
func described[T any](k key[T], def string) key[T] {
	k.def = def
	return k
}

// ownAddress accepts an address that only this machine can reach: what answers
// there asks nobody who they are.
func ownAddress(s string) string {
	if s == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "is no host:port, such as 127.0.0.1:9464"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("has no port in it that exists: %q", port)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Sprintf("would be open to other machines: %q is not this machine's own address; write 127.0.0.1 or [::1], and let a proxy that asks for a password stand before it", host)
	}
	return ""
}

// plainName accepts what fits into LISTEN_FDNAMES, file names and messages.
func plainName(s string) string {
	if s == "" {
		return "is empty"
	}
	if len(s) > 64 {
		return "is longer than 64 bytes"
	}
	if !bareKey(s) {
		return "may have letters, digits, '-' and '_' only"
	}
	return ""
}

func hexDigest(s string) string {
	if s == "" {
		return ""
	}
	if len(s) != 64 {
		return "is not a SHA-256: 64 hex digits are needed, as sha256sum prints them"
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return "is not a SHA-256: it has a letter that is no hex digit"
		}
	}
	return ""
}
