//go:build unix

package listen

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

func TestFits(t *testing.T) {
	tcp, udp := bind(t, "tcp", "127.0.0.1:0"), bind(t, "udp", "127.0.0.1:0")
	all, unix := bind(t, "tcp", ":0"), bind(t, "unix", socketPath(t))
	port := func(h *Held) string {
		_, p, _ := net.SplitHostPort(h.Addr().String())
		return p
	}
	for _, c := range []struct {
		what             string
		h                *Held
		network, address string
		fits, isAt       bool
	}{
		{"itself", tcp, "tcp", tcp.Addr().String(), true, true},
		{"without a network", tcp, "", tcp.Addr().String(), true, true},
		{"a name of the host", tcp, "tcp4", "localhost:" + port(tcp), true, true},
		{"any port", tcp, "tcp", "127.0.0.1:0", true, false},
		{"another port", tcp, "tcp", "127.0.0.1:1", false, false},
		{"another address", tcp, "tcp", "127.0.0.2:" + port(tcp), false, false},
		{"all addresses, and it has one", tcp, "tcp", ":" + port(tcp), false, false},
		{"another kind", tcp, "udp", tcp.Addr().String(), false, false},
		{"datagrams", udp, "udp", udp.Addr().String(), true, true},
		{"datagrams, another kind", udp, "tcp", udp.Addr().String(), false, false},
		{"all addresses", all, "tcp", ":" + port(all), true, true},
		{"one address, and it has all", all, "tcp", "127.0.0.1:" + port(all), false, false},
		{"a path", unix, "unix", unix.Addr().String(), true, true},
		{"another path", unix, "unix", "/nowhere", false, false},
		{"nonsense", tcp, "tcp", "nonsense", false, false},
	} {
		if c.h.Fits(c.network, c.address) != c.fits || c.h.IsAt(c.network, c.address) != c.isAt {
			t.Errorf("%s: %v and %s %q: fits %v, is at %v", c.what, c.h.Addr(), c.network, c.address, !c.fits, !c.isAt)
		}
	}
}

func TestDatagramsAreHeld(t *testing.T) {
	h := bind(t, "udp", "127.0.0.1:0")
	client, err := net.Dial("udp", h.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.Write([]byte("early"))
	again, err := h.Again()
	if err != nil {
		t.Fatal(err)
	}
	if !again.Same(h.File()) || again.Network() != "udp" || again.Addr().String() != h.Addr().String() {
		t.Errorf("again %s %v, was %v", again.Network(), again.Addr(), h.Addr())
	}
	got, err := FromFile("dns", again.File())
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close(false)
	reader, err := net.FilePacketConn(got.File())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	b := make([]byte, 9)
	if n, _, err := reader.ReadFrom(b); err != nil || string(b[:n]) != "early" {
		t.Errorf("read %q, %v", b[:n], err)
	}
}

// TestEnvironmentOfTheStarter: what is lent, and that nothing of it is passed on.
func TestEnvironmentOfTheStarter(t *testing.T) {
	if os.Getenv("LENT_TEST") != "" {
		if os.Getenv("LISTEN_PID") == "self" {
			os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
		}
		lent, err := LentByEnvironment()
		var names []string
		for _, l := range lent {
			if h, err := FromLent(l.Name, l.File); err == nil {
				names = append(names, l.Name+"="+h.Network())
			}
		}
		left := strings.Contains(strings.Join(os.Environ(), "\n"), "LISTEN_")
		open, _ := exec.Command("/bin/sh", "-c", "ls /proc/self/fd /dev/fd 2>/dev/null | sort -u | tr '\n' ' '; test -e /dev/fd/4 && echo leaked").Output()
		t.Logf("got %v, %v, left %v, leaked %v", names, err, left, strings.Contains(string(open), "leaked"))
		return
	}
	web := bind(t, "tcp", "127.0.0.1:0")
	dns := bind(t, "udp", "127.0.0.1:0")
	for _, c := range []struct {
		pid, fds, names string
		want            string
	}{
		{"self", "2", "web:dns", "got [web=tcp dns=udp], <nil>, left false, leaked false"},
		{"self", "2", "", "got [unknown=tcp unknown=udp], <nil>, left false, leaked false"},
		{"1", "2", "web:dns", "got [], <nil>, left false"},
		{"", "", "", "got [], <nil>, left false"},
		{"self", "2", "web", "got [], take over sockets: LISTEN_FDNAMES has 1 names for 2 descriptors"},
		{"self", "x", "", `got [], take over sockets: LISTEN_FDS is "x"`},
		{"self", "900", "", " is not open, left false"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestEnvironmentOfTheStarter$", "-test.v")
		cmd.ExtraFiles = []*os.File{web.File(), dns.File()}
		cmd.Env = append(os.Environ(), "LENT_TEST=1")
		for name, value := range map[string]string{"LISTEN_PID": c.pid, "LISTEN_FDS": c.fds, "LISTEN_FDNAMES": c.names} {
			if value != "" {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%+v: %v\n%s", c, err, out)
		}
	}
}
