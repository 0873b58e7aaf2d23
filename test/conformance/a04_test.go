//go:build linux

package conformance

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// TestA04_ThreadsOfTheEmbedderEnd: workers live on when threads of the program
// that started them end, as those of goroutines that lock theirs do.
func TestA04_ThreadsOfTheEmbedderEnd(t *testing.T) {
	dir := shortdir.New(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := supervisor.DefaultRole()
	r.Name, r.Command, r.Dir = "kv", []string{exe, "tw"}, dir
	sup, err := supervisor.New(supervisor.Config{RuntimeDir: filepath.Join(dir, "run"), StateDir: filepath.Join(dir, "state"), Roles: []supervisor.RoleConfig{r}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // what starts workers ends with its thread, too
		ended <- sup.Run(ctx)
	}()
	defer func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the supervisor did not end")
		}
	}()
	pids := func() (list []int) {
		for _, w := range sup.Snapshot().Roles[0].Workers {
			if !w.Ready {
				return nil
			}
			list = append(list, w.PID)
		}
		return list
	}
	eventually.Holds(t, "three workers are ready", func() bool { return len(pids()) == 3 })
	before := pids()
	deaths := sup.Subscribe(ctx)

	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
			time.Sleep(time.Millisecond)
		})
	}
	all.Wait()
	over := time.After(long(time.Second, 10*time.Second))
	for {
		select {
		case e := <-deaths:
			if e.Type == supervisor.EventWorkerExited {
				t.Errorf("%s ended: %+v", e.Worker, e.Exit)
			}
			continue
		case <-over:
		}
		break
	}
	after := pids()
	for i := range before {
		if len(after) != 3 || after[i] != before[i] {
			t.Fatalf("workers %v, before %v", after, before)
		}
	}
}
