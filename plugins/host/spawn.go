package host

import (
	"os/exec"
	"runtime"
	"sync"
)

// The kernel sends a parent-death signal when the THREAD that created the
// child ends, and Go ends threads: those of goroutines that return while
// locked. So every plugin is started from one thread that never ends.
var (
	spawnerOnce sync.Once
	spawnQueue  = make(chan spawnRequest)
)

type spawnRequest struct {
	cmd    *exec.Cmd
	answer chan<- error
}

func spawn(cmd *exec.Cmd) error {
	spawnerOnce.Do(func() { go spawner() })
	answer := make(chan error, 1)
	spawnQueue <- spawnRequest{cmd: cmd, answer: answer}
	return <-answer
}

// spawner never returns, and so neither does its thread.
func spawner() {
	runtime.LockOSThread()
	for r := range spawnQueue {
		r.answer <- r.cmd.Start()
	}
}
