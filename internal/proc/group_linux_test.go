//go:build linux

package proc

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

func TestGroupIsGoneWithItsLastLivingMember(t *testing.T) {
	leader := exec.Command("sleep", "1000")
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	group := leader.Process.Pid
	member := exec.Command("sleep", "1000")
	member.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	defer member.Wait()
	leader.Process.Kill()
	leader.Wait()
	if GroupGone(group) {
		t.Error("a group without its leader is gone")
	}
	member.Process.Kill() // and stays a zombie
	eventually.Holds(t, "the group is gone, with a zombie in it", func() bool { return GroupGone(group) })
}
