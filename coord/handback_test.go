//go:build linux

package coord_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/internal/rolesock"
)

// TestListenersOutliveTheSupervisor: clients reach whoever leads through one
// socket, and a new supervisor gets that socket back from the workers.
func TestListenersOutliveTheSupervisor(t *testing.T) {
	s := newStage(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	held, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	notify := filepath.Join(s.dir, "notify.sock")
	enter := func() *actor {
		return s.enterWith([]*os.File{held}, "STANDBYD_LISTEN_FDS=http=3", "NOTIFY_SOCKET="+notify)
	}
	get := func() string {
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
		resp, err := c.Get("http://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}

	leader := enter()
	leader.expect("lead 1")
	leader.order("serve")
	leader.expect("serves")
	if b := get(); b != "term 1" {
		t.Errorf("served %q", b)
	}
	standby := enter()
	s.racing(standby)
	held.Close() // this supervisor forgets

	// The next one: another process as far as the workers can tell.
	sock, err := rolesock.Listen(notify, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	seat, err := s.table.Join(self, heartbeat.JoinOptions{Index: -1, Supervisor: true})
	if err != nil {
		t.Fatal(err)
	}
	defer seat.Leave()
	back, ready := map[int]*os.File{}, map[int]bool{}
	for len(back) < 2 || len(ready) < 2 {
		m, err := sock.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Fields["FDSTORE"] == "1" {
			if m.Fields["FDNAME"] != "http" || len(m.Files) != 1 || m.Fields["STANDBYD_WORKER"] == "" {
				t.Errorf("handed back: %v, %d files", m.Fields, len(m.Files))
			}
			for _, f := range m.Files {
				back[m.PID] = f
				defer f.Close()
			}
		}
		if m.Fields["READY"] == "1" {
			ready[m.PID] = true
		}
	}
	if back[leader.cmd.Process.Pid] == nil || back[standby.cmd.Process.Pid] == nil {
		t.Errorf("handed back by %v", back)
	}

	leader.signal(syscall.SIGKILL)
	standby.expect("lead 2")
	answer := make(chan string)
	go func() { answer <- get() }() // waits in the socket
	standby.order("serve")
	standby.expect("serves")
	if b := <-answer; b != "term 2" {
		t.Errorf("served %q", b)
	}
	again, err := net.FileListener(back[standby.cmd.Process.Pid])
	if err != nil || again.Addr().String() != addr {
		t.Errorf("the socket that came back: %v, %v, want %s", again, err, addr)
	} else {
		again.Close()
	}
	standby.signal(syscall.SIGTERM)
	standby.expect("run <nil>")
	for m, err := sock.Receive(); ; m, err = sock.Receive() {
		if err != nil {
			t.Fatal(err)
		}
		if m.Fields["STANDBYD_LOOK"] == "1" && m.PID == standby.cmd.Process.Pid {
			break // the end of a leadership is told
		}
	}
}

func TestListenerNotThere(t *testing.T) {
	s := newStage(t, nil)
	a := s.enter("")
	a.expect("lead 1")
	a.order("serve")
	if e := a.expect("listener "); e != fmt.Sprintf("no such listener: %q (the role has: none)", "http") {
		t.Errorf("error %q", e)
	}
}

// The descriptor is enough: a worker of another user, or in another root,
// cannot open the path.
func TestSegmentByDescriptor(t *testing.T) {
	s := newStage(t, nil)
	a := s.enterWith([]*os.File{s.seg.File()}, "STANDBYD_SEGMENT=/nowhere/segment", "STANDBYD_SEGMENT_FD=3")
	a.expect("lead 1")
	bad := s.enterWith(nil, "STANDBYD_SEGMENT_FD=77")
	if e := bad.expect("run "); !strings.Contains(e, "STANDBYD_SEGMENT_FD: descriptor 77: it is not open") {
		t.Errorf("a wrong descriptor: %s", e)
	}
	no := s.enterWith([]*os.File{s.seg.File()}, "STANDBYD_LISTEN_FDS=http=3")
	if e := no.expect("run "); !strings.Contains(e, "descriptor 3 (http): it is neither a listening socket nor one for datagrams") {
		t.Errorf("a listener that is none: %s", e)
	}
}
