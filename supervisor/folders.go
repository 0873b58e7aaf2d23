package supervisor

import (
	"fmt"
	"path/filepath"
)

// Where things are. Everything of a role that lives as long as the machine is
// in its own folder.

const socketName = "notify.sock"

func rolesDir(runtimeDir string) string { return filepath.Join(runtimeDir, "roles") }

type rolePaths struct{ dir, logs string }

func (p rolePaths) segment(generation uint64) string {
	return filepath.Join(p.dir, fmt.Sprintf("segment.%d", generation))
}
func (p rolePaths) socket() string       { return filepath.Join(p.dir, socketName) }
func (p rolePaths) workers() string      { return filepath.Join(p.dir, "workers.json") }
func (p rolePaths) fifo(i int) string    { return filepath.Join(p.dir, fmt.Sprintf("%d.fifo", i)) }
func (p rolePaths) plugins() string      { return filepath.Join(p.dir, "p") }
func (p rolePaths) hookDir(i int) string { return filepath.Join(p.plugins(), fmt.Sprint(i)) }
func (p rolePaths) log(worker string) string {
	return filepath.Join(p.logs, worker+".log")
}
func (p rolePaths) pluginLog(role string) string {
	return filepath.Join(p.logs, role+".plugins.log")
}
