//go:build linux

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/standbyd/standbyd/plugins"
)

// plugin is a plugin that writes down what it is told. It does not return.
func plugin(path string) { plugins.Serve(diary(path)) }

type diary string

func (d diary) OnPromote(_ context.Context, t plugins.Transition) error { return d.note("promote", t) }
func (d diary) OnDemote(_ context.Context, t plugins.Transition) error  { return d.note("demote", t) }

func (d diary) note(moment string, t plugins.Transition) error {
	f, err := os.OpenFile(string(d), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %s %s %d\n", moment, t.Token, t.Reason, os.Getpid())
	return err
}

// told is what the plugin $PLUGIN, "$DIR/told" has written.
func (d *daemon) told() []string {
	b, _ := os.ReadFile(d.dir + "/told")
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// pluginPIDs are the living processes of that plugin.
func (d *daemon) pluginPIDs() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if b, _ := os.ReadFile(file); bytes.HasSuffix(b, []byte("\x00plugin\x00"+d.dir+"/told\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}
