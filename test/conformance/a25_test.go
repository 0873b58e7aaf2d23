//go:build linux

package conformance

import (
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stranger runs a verb as a user who has nothing to do with the daemon.
func (d *daemon) stranger(args ...string) (string, error) {
	cmd := exec.Command(standbyd, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64009, Gid: 64009}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// open gives other users the way to the program under test, and to the
// test's folder. The folders of standbyd are left as it made them.
func (d *daemon) open() {
	for _, dir := range []string{filepath.Dir(standbyd), d.dir} {
		if err := os.Chmod(dir, 0o711); err != nil {
			d.t.Fatal(err)
		}
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// listening are the addresses of TCP sockets on which a process listens.
func listening(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	inodes := map[string]bool{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "socket:[") {
			inodes[strings.Trim(to, "socket:[]")] = true
		}
	}
	if len(inodes) == 0 {
		t.Fatalf("pid %d has no sockets at all", pid)
	}
	for _, table := range []string{"tcp", "tcp6"} {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && inodes[f[9]] {
				addresses = append(addresses, f[1])
			}
		}
	}
	return addresses
}

// TestA25_ControlSocket: it is for its owner alone, others are told whose it is
// and what could be changed; there is no TCP unless it is configured, and then
// nothing can be changed over it; a socket that a crash left is replaced, one
// on which somebody listens never.
func TestA25_ControlSocket(t *testing.T) {
	t.Parallel()
	const role = "[role.kv]\ncommand = [$TW]\nworkers = 2\n"
	d := newDaemon(t, role)
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	socket := filepath.Join(d.dir, "run", "standbyd.sock")
	if m := mode(t, socket); m != fs.ModeSocket|0o600 {
		t.Errorf("the socket has mode %v", m)
	}
	// Roles may have users of their own if root runs it; they pass through to their folder.
	folder := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		folder = 0o711
	}
	if m := mode(t, filepath.Dir(socket)); m != fs.ModeDir|folder {
		t.Errorf("the runtime folder has mode %v, want %v", m, folder)
	}
	if m := mode(t, filepath.Join(d.dir, "run/roles/kv")); m != fs.ModeDir|0o700 {
		t.Errorf("the role's folder has mode %v", m)
	}
	if l := listening(t, d.main); len(l) != 0 {
		t.Errorf("it listens on %v", l)
	}
	before := d.pids()

	t.Run("strangers are told", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can become other users")
		}
		d.open()
		for _, verb := range [][]string{{"status"}, {"shutdown"}} {
			out, err := d.stranger(append([]string{"--socket", socket}, verb...)...)
			if status(err) != 1 {
				t.Errorf("%v by a stranger ended with %d", verb, status(err))
			}
			for _, word := range []string{socket, "belongs to root (uid 0)", "you are uid 64009", "control_group", "runtime_dir"} {
				if !strings.Contains(out, word) {
					t.Errorf("%v by a stranger: no %q in %s", verb, word, out)
				}
			}
		}
		// Opened by hand, it still asks who is there.
		if err := os.Chmod(socket, 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := d.stranger("--socket", socket, "shutdown")
		if status(err) != 1 || !strings.Contains(out, "uid 64009 may not change anything over this socket") || !strings.Contains(out, "control_group") {
			t.Errorf("shutdown through an opened socket ended with %d: %s", status(err), out)
		}
		if err := os.Chmod(socket, 0o600); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("a live socket is never replaced", func(t *testing.T) {
		ours, err := os.Lstat(socket)
		if err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(d.dir, "other.toml")
		text := "[supervisor]\nruntime_dir = \"run2\"\nstate_dir = \"state2\"\n[role.kv]\ncommand = [\"sleep\", \"1000\"]\n"
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(standbyd, "-c", other, "--socket", socket, "run").CombinedOutput()
		if status(err) != 1 || !strings.Contains(string(out), "live daemon") || !strings.Contains(string(out), socket) {
			t.Errorf("another one on the same socket ended with %d: %s", status(err), out)
		}
		if now, err := os.Lstat(socket); err != nil || !os.SameFile(ours, now) {
			t.Errorf("the socket is another one now: %v", err)
		}
		d.must("status")
	})

	t.Run("a stale one is replaced", func(t *testing.T) {
		syscall.Kill(d.main, syscall.SIGKILL)
		d.wait()
		if out, err := d.run("status"); status(err) != 3 || !strings.Contains(out, "nobody listens on "+socket) {
			t.Errorf("status without a daemon ended with %d: %s", status(err), out)
		}
		d.start()
		d.must("wait", "kv", "--for", "ready", "-T", "1m")
		if m := mode(t, socket); m != fs.ModeSocket|0o600 {
			t.Errorf("the new socket has mode %v", m)
		}
		if n := d.stayed("kv", before); n != 2 {
			t.Errorf("%d of 2 workers are as they were", n)
		}
	})

	t.Run("no TCP to give orders by", func(t *testing.T) {
		const head = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n"
		for _, c := range []struct{ key, says string }{
			{"listen = \"0.0.0.0:9001\"\n", "unknown key"},
			{"control_address = \"127.0.0.1:9001\"\n", "unknown key"},
			{"metrics_address = \"0.0.0.0:9464\"\n", "open to other machines"},
			{"metrics_address = \":9464\"\n", "open to other machines"},
		} {
			file := filepath.Join(d.dir, "tcp.toml")
			if err := os.WriteFile(file, []byte(head+c.key+"[role.kv]\ncommand = [\"sleep\", \"1000\"]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, verb := range []string{"check", "run"} {
				out, err := exec.Command(standbyd, "-c", file, verb).CombinedOutput()
				if status(err) != 2 || !strings.Contains(string(out), "tcp.toml:4:") || !strings.Contains(string(out), c.says) {
					t.Errorf("%s with %q ended with %d: %s", verb, c.key, status(err), out)
				}
			}
		}
	})
}

// TestA25_MetricsAddressGivesNoOrders: what may be reached over TCP, from this
// machine alone and only if it is configured, can be read and nothing else.
func TestA25_MetricsAddressGivesNoOrders(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	d := newDaemon(t, fmt.Sprintf("metrics_address = %q\n[role.kv]\ncommand = [$TW]\nworkers = 2\n", address))
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	if l := listening(t, d.main); len(l) != 1 || !strings.HasPrefix(l[0], "0100007F:") {
		t.Errorf("it listens on %v, want 127.0.0.1 alone", l)
	}
	before := d.pids()
	for _, c := range []struct {
		method, path string
		want         func(int) bool
	}{
		{"GET", "/metrics", func(code int) bool { return code == 200 }},
		{"POST", "/v1/shutdown", func(code int) bool { return code == 404 || code == 405 }},
		{"POST", "/v1/failover", func(code int) bool { return code == 404 || code == 405 }},
		{"GET", "/v1/status", func(code int) bool { return code == 404 }},
		{"POST", "/metrics", func(code int) bool { return code == 405 }},
	} {
		req, err := http.NewRequest(c.method, "http://"+address+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if !c.want(res.StatusCode) {
			t.Errorf("%s %s over TCP is answered with %s", c.method, c.path, res.Status)
		}
	}
	if n := d.stayed("kv", before); n != 2 {
		t.Errorf("%d of 2 workers are as they were", n)
	}
}
