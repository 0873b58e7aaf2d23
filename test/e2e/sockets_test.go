//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// serveSockets is a worker that answers on every socket of its role, with what
// it was sent and its own pid. Before that it tells what it was started with.
func serveSockets() {
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "LISTEN_") {
			fmt.Println(e)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := coord.Run(ctx, func(ctx context.Context, l *coord.Leadership) error {
		var all sync.WaitGroup
		for _, pair := range strings.Split(os.Getenv("STANDBYD_LISTEN_FDS"), ",") {
			name, _, _ := strings.Cut(pair, "=")
			if pc, err := l.PacketConn(name); err == nil {
				defer pc.Close()
				context.AfterFunc(ctx, func() { pc.SetReadDeadline(time.Now()) }) // what was read is answered
				all.Go(func() {
					b := make([]byte, 1500)
					for {
						n, from, err := pc.ReadFrom(b)
						if err != nil {
							return
						}
						pc.WriteTo(fmt.Appendf(nil, "%s %d", b[:n], os.Getpid()), from)
					}
				})
				continue
			}
			ln, err := l.Listener(name)
			if err != nil {
				return err
			}
			context.AfterFunc(ctx, func() { ln.Close() })
			all.Go(func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					b := make([]byte, 1500)
					n, _ := c.Read(b)
					fmt.Fprintf(c, "%s %d", b[:n], os.Getpid())
					c.Close()
				}
			})
		}
		all.Wait()
		return nil
	})
	if err != nil && ctx.Err() == nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// activate starts standbyd as systemd does for a socket unit: in its own place,
// with the descriptors from 3 on.
func activate() {
	os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	os.Unsetenv(playsEnv)
	argv := strings.Split(os.Getenv("E2E_ARGV"), "\n")
	err := syscall.Exec(argv[0], argv, os.Environ())
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// ask sends text to a server of serveSockets and returns who answered.
func ask(t *testing.T, network, address, text string) int {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, text)
	return answer(t, c, text)
}

func answer(t *testing.T, c net.Conn, text string) (pid int) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	var b []byte
	var err error
	if c.LocalAddr().Network() == "udp" {
		b = make([]byte, 1500)
		var n int
		n, err = c.Read(b)
		b = b[:n]
	} else {
		b, err = io.ReadAll(c)
	}
	got, number, _ := strings.Cut(string(b), " ")
	pid, perr := strconv.Atoi(number)
	if err != nil || perr != nil || got != text {
		t.Fatalf("sent %q, answered %q, %v", text, b, err)
	}
	return pid
}

// TestDatagramsWaitForALeader: what arrives on a UDP socket while nobody leads
// is answered by the next leader, and a switchover loses nothing.
func TestDatagramsWaitForALeader(t *testing.T) {
	t.Parallel()
	d := configure(t, `
[role.kv]
command = ["@SELF"]
env = { E2E_PLAYS = "worker-sockets" }
failovers = 100
[[role.kv.listen]]
name = "dns"
network = "udp"
address = "127.0.0.1:0"
`)
	d.start()
	d.whole("kv")
	r := d.role("kv")
	if r.Listen[0].Network != "udp" || strings.HasSuffix(r.Listen[0].Address, ":0") {
		t.Fatalf("the listener is %+v", r.Listen[0])
	}
	if out := d.run("status", "kv"); !strings.Contains(out, "dns on udp 127.0.0.1:") {
		t.Errorf("status:\n%s", out)
	}
	address := r.Listen[0].Address
	if pid := ask(t, "udp", address, "first"); pid != r.LeaderPID {
		t.Errorf("pid %d answered, and %d leads", pid, r.LeaderPID)
	}
	c, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for round := range rounds(3) {
		before := d.role("kv").LeaderPID
		d.run("pause", "kv")
		d.run("signal", "kv/leader", "KILL")
		eventually.Shows(d.t, "nobody leads", func() (bool, string) { return d.role("kv").Leader == "", "" })
		const waiting = 50
		for i := range waiting {
			fmt.Fprintf(c, "%d-%d", round, i)
		}
		d.run("resume", "kv")
		for i := range waiting {
			if pid := answer(t, c, fmt.Sprintf("%d-%d", round, i)); pid == before {
				t.Errorf("datagram %d was answered by a dead leader", i)
			}
		}
		d.whole("kv")
	}
	// One after the other, while the leader changes: each is answered.
	over := make(chan error, 1)
	go func() {
		for range rounds(3) {
			if out, err := d.try("switchover", "kv"); err != nil {
				over <- fmt.Errorf("%w: %s", err, out)
				return
			}
		}
		over <- nil
	}()
	answered := map[int]bool{}
	for i := 0; ; i++ {
		fmt.Fprintf(c, "s%d", i)
		answered[answer(t, c, fmt.Sprintf("s%d", i))] = true
		select {
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			if len(answered) < 2 {
				t.Errorf("over %d switchovers one worker answered", rounds(3))
			}
			// A supervisor that was killed gets the socket back from the workers.
			before := d.role("kv")
			d.end(syscall.SIGKILL)
			d.start()
			d.whole("kv")
			if after := d.role("kv"); after.LeaderPID != before.LeaderPID || after.Listen[0].Address != address {
				t.Errorf("was %+v, is %+v", before, after)
			}
			d.run("signal", "kv/leader", "KILL")
			fmt.Fprint(c, "last")
			answer(t, c, "last")
			return
		default:
		}
	}
}

// TestSocketsOfSystemd: sockets that standbyd is started with serve the listeners
// with their address or name; others are closed and reported; workers see
// nothing of it. They survive standbyd, and stay what they were after it.
func TestSocketsOfSystemd(t *testing.T) {
	t.Parallel()
	const fixed = `
[role.kv]
command = ["@SELF"]
env = { E2E_PLAYS = "worker-sockets" }
[[role.kv.listen]]
name = "web"
address = "@WEB"
[[role.kv.listen]]
name = "admin"
address = "127.0.0.1:1"
[[role.kv.listen]]
name = "dns"
network = "udp"
address = "127.0.0.1:2"
[[role.kv.listen]]
name = "local"
address = "@LOCAL"
[[role.kv.listen]]
name = "own"
address = "127.0.0.1:0"
[role.other]
command = ["@SELF"]
env = { E2E_PLAYS = "worker-sockets" }
workers = 1
[[role.other.listen]]
name = "admin"
address = "127.0.0.1:0"
`
	tcp := func() *net.TCPListener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.(*net.TCPListener)
	}
	web, admin, stray, twice := tcp(), tcp(), tcp(), tcp()
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dns.Close()
	dir := shortdir.New(t)
	path := filepath.Join(dir, "local.sock")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer w.Close()

	d := configure(t, strings.NewReplacer("@WEB", web.Addr().String(), "@LOCAL", path).Replace(fixed))
	names := []string{"whatever", "kv.admin", "dns", "kv.socket", "stray", "admin", "junk"}
	d.prepare = func(cmd *exec.Cmd) {
		var files []*os.File
		for _, l := range []interface{ File() (*os.File, error) }{web, admin, dns.(*net.UDPConn), local.(*net.UnixListener), stray, twice} {
			f, err := l.File()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			files = append(files, f)
		}
		cmd.ExtraFiles = append(files, pipe)
		cmd.Env = append(os.Environ(), playsEnv+"=socket-activation", "E2E_ARGV="+strings.Join(cmd.Args, "\n"),
			"LISTEN_FDS="+strconv.Itoa(len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = self, []string{self}
	}
	d.start()
	d.whole("kv")
	addresses := map[string]string{}
	for _, l := range d.role("kv").Listen {
		addresses[l.Name] = l.Address
	}
	for name, want := range map[string]net.Addr{"web": web.Addr(), "admin": admin.Addr(), "dns": dns.LocalAddr(), "local": local.Addr()} {
		if addresses[name] != want.String() {
			t.Errorf("%s is on %s, want %v", name, addresses[name], want)
		}
	}
	everySocket := func() {
		t.Helper()
		leader := d.role("kv").LeaderPID
		for name, address := range addresses {
			network := map[string]string{"dns": "udp", "local": "unix"}[name]
			if network == "" {
				network = "tcp"
			}
			if pid := ask(t, network, address, "hello"); pid != leader {
				t.Errorf("%s was answered by %d, and %d leads", name, pid, leader)
			}
		}
	}
	everySocket()
	b, err := os.ReadFile(filepath.Join(d.dir, "daemon.log"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(b)
	for _, want := range []string{
		`the socket "stray" on tcp ` + stray.Addr().String() + " was passed to standbyd, and no listener of the config is of its kind and has its address or name: closed",
		`the socket "admin" on tcp ` + twice.Addr().String() + ` was passed to standbyd, and several roles have a listener "admin" and none has its address: call it ROLE.admin: closed`,
		`("junk") was passed to standbyd and is of no use, so it is closed`,
		"listener admin is on tcp " + admin.Addr().String() + ", as the socket that was passed to standbyd under its name, and not on 127.0.0.1:1",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in:\n%s", want, log)
		}
	}
	out := d.run("logs", "kv/0")
	for _, want := range []string{"LISTEN_FDS=5", "LISTEN_FDNAMES=web:admin:dns:local:own", "LISTEN_PID=" + strconv.Itoa(d.role("kv").Workers[0].PID)} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in the worker's output:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "LISTEN_"); n != 3 {
		t.Errorf("the worker sees %d variables:\n%s", n, out)
	}
	for _, pid := range []int{d.cmd.Process.Pid, d.role("kv").LeaderPID} {
		held := socketsOf(t, pid)
		for _, l := range []*net.TCPListener{stray, twice} {
			if slices.Contains(held, inodeOf(t, l)) {
				t.Errorf("pid %d holds a socket that nobody wanted", pid)
			}
		}
	}

	// A listener goes, and comes back: it is the same socket.
	text, err := os.ReadFile(d.conf)
	if err != nil {
		t.Fatal(err)
	}
	part := "[[role.kv.listen]]\nname = \"local\"\naddress = \"" + path + "\"\n"
	for _, now := range []string{strings.Replace(string(text), part, "", 1), string(text)} {
		if err := os.WriteFile(d.conf, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		d.run("reload")
	}
	everySocket()

	// The next standbyd is lent the same ones.
	before := d.role("kv")
	d.end(syscall.SIGKILL)
	d.start()
	d.whole("kv")
	if after := d.role("kv"); after.LeaderPID != before.LeaderPID {
		t.Errorf("pid %d led, now %d does", before.LeaderPID, after.LeaderPID)
	}
	everySocket()
	d.run("signal", "kv/leader", "KILL")
	d.successor("kv", before)
	d.whole("kv")
	everySocket()

	d.run("shutdown")
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("standbyd has removed a path that was not its own: %v", err)
	}
}

// TestAddressChangedWhileStandbydWasAway: the workers that the next standbyd
// adopts serve the old address until a reload restarts them; then the new one.
func TestAddressChangedWhileStandbydWasAway(t *testing.T) {
	t.Parallel()
	d := configure(t, `
[role.kv]
command = ["@SELF"]
env = { E2E_PLAYS = "worker-sockets" }
[[role.kv.listen]]
name = "web"
address = "127.0.0.1:0"
`)
	d.start()
	before := d.whole("kv")
	d.end(syscall.SIGKILL)
	text, err := os.ReadFile(d.conf)
	if err != nil {
		t.Fatal(err)
	}
	now := strings.Replace(string(text), "127.0.0.1:0", filepath.Join(d.dir, "web.sock"), 1)
	if err := os.WriteFile(d.conf, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	var web string
	eventually.Shows(d.t, "the listener is where the config says", func() (bool, string) {
		l := d.role("kv").Listen[0]
		web = l.Address
		return l.Network == "unix" && web == filepath.Join(d.dir, "web.sock"), fmt.Sprintf("%+v", l)
	})
	if pid := ask(t, "tcp", before.Listen[0].Address, "old"); pid != before.LeaderPID {
		t.Errorf("pid %d answered, and %d leads", pid, before.LeaderPID)
	}
	d.run("reload")
	if pid := ask(t, "unix", web, "new"); pid == before.LeaderPID {
		t.Errorf("the leader was not restarted")
	}
	if c, err := net.Dial("tcp", before.Listen[0].Address); err == nil {
		c.Close()
		t.Error("the old address is still open")
	}
}

// socketsOf are the sockets that a process has open, as their inodes.
func socketsOf(t *testing.T, pid int) (inodes []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			inodes = append(inodes, to)
		}
	}
	return inodes
}

func inodeOf(t *testing.T, l *net.TCPListener) string {
	t.Helper()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return to
}
