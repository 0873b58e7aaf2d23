package supervisor

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/verify"
)

// TestForcedChangesOfRealWorkers kills leaders as fast as the next one leads,
// under hooks that take 0 to 200 ms, fail and hang: the changes outrun them.
// Ten times here, a thousand times in a soak.
func TestForcedChangesOfRealWorkers(t *testing.T) {
	changes := 10
	if os.Getenv("SOAK") != "" {
		changes = 1000
	}
	c := newConfig(t, "good")
	hook := &slowly{name: "a", rnd: rand.New(rand.NewPCG(1, 2))}
	c.Roles[0].Hooks, c.Roles[0].Failovers, c.Roles[0].Burst = []NamedHooks{{Name: "a", Hooks: hook}}, 1<<30, 1<<30
	w := start(t, c)
	last := w.until("somebody leads", led)
	for i := range changes {
		syscall.Kill(last.LeaderPID, syscall.SIGKILL)
		last = w.until("the next one leads", func(r RoleStatus) bool { return led(r) && r.Term > last.Term })
		if i%10 == 9 { // the record follows the hooks: they have caught up
			w.until("the hooks know of it", func(r RoleStatus) bool { return r.LastFailover != nil && r.LastFailover.Term == last.Term })
		}
	}
	w.shutdown()
	hook.mu.Lock()
	defer hook.mu.Unlock()
	for _, v := range (verify.History{Calls: hook.book}).Check() {
		t.Error(v)
	}
	// How many there are is a matter of how far the changes outrun the hooks:
	// none is made while one hangs. Of ten, some come through.
	if n := len(hook.book); n < changes/5 {
		t.Errorf("%d calls of %d changes", n, changes)
	}
	w.noProcesses()
}
