package supervisor

import (
	"fmt"
	"path/filepath"

	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/internal/logreader"
)

// output is where the lines of a worker, or of the hooks, go. Its methods are
// safe for concurrent use.
type output interface {
	// LastWords returns when what was printed before is on disk, and gives the
	// last n lines since the LastWords before: of one life. It can take seconds.
	LastWords(n int) []string
	// Tail is the last n lines, of several lives.
	Tail(n int) []string
	// Note adds a line of our own. It does not wait.
	Note(line string)
	// Dropped counts the lines that are not in the file.
	Dropped() uint64
	Close() error
}

func (r *roleLoop) logOptions() capture.Options {
	return capture.Options{MaxBytes: r.config.LogMaxBytes, MaxAge: r.config.LogMaxAge, Keep: r.config.LogKeep, Compress: r.config.LogCompress}
}

// openOutputs makes the FIFOs and has them read: by the reader process of the
// role, or, without the launch stage, by ourselves.
func (r *roleLoop) openOutputs(uid, gid int) error {
	fresh := r.reader == nil
	if fresh && logreader.Supported() {
		r.reader = logreader.New(r.config.Name, r.paths.dir, func(text string) { r.emit(Event{Type: EventWarning, Text: text}) })
	} else if fresh {
		// A program that could have a reader may have run here before.
		if err := logreader.EndAny(r.paths.dir); err != nil {
			r.emit(Event{Type: EventWarning, Text: err.Error()})
		}
	}
	for i, p := range r.posts {
		fifo := r.paths.fifo(i)
		if err := capture.MakeFIFO(fifo, uid, gid); err != nil {
			return atRuntime{err}
		}
		name := workerName(r.config.Name, i)
		out, err := r.openOutput(p.output, name, fifo, r.paths.log(name))
		if err != nil {
			return err
		}
		p.output = out
		if log, ok := out.(*logreader.Log); ok && fresh && p.life != nil {
			log.TrackOutput(p.life.process.Identity().PID)
		}
	}
	if len(r.config.Hooks) > 0 {
		name := r.config.Name + ".plugins"
		var before output
		if p := r.pluginLog.Load(); p != nil {
			before = *p
		}
		out, err := r.openOutput(before, name, "", r.paths.pluginLog(r.config.Name))
		if err != nil {
			return err
		}
		r.pluginLog.Store(&out)
	}
	if r.reader == nil {
		return nil
	}
	if fresh {
		r.reader.Start()
	} else {
		r.reader.Renew()
	}
	return nil
}

// openOutput makes an output, or has an existing one read a FIFO that was made
// again. Without a FIFO there are only notes.
func (r *roleLoop) openOutput(before output, name, fifo, file string) (output, error) {
	if r.reader != nil {
		log, ok := before.(*logreader.Log)
		if !ok {
			log = r.reader.Log(name, file, r.logOptions())
		}
		if fifo == "" {
			return log, nil
		}
		return log, log.Track(fifo)
	}
	if before != nil {
		before.Close()
	}
	if fifo == "" {
		return capture.New(file, r.logOptions())
	}
	return capture.Start(fifo, file, r.logOptions())
}

// closeOutputs lets go of them. A reader is ended if nobody needs it any more.
func (r *roleLoop) closeOutputs(end bool) {
	if r.reader != nil {
		if end {
			r.reader.End()
		} else {
			r.reader.Leave()
		}
	}
	for _, p := range r.posts {
		if p.output != nil && r.reader == nil {
			p.output.Close()
		}
		p.output = nil
	}
	if p := r.pluginLog.Swap(nil); p != nil && r.reader == nil {
		(*p).Close()
	}
	r.reader = nil
}

// lastLines is how many lines of a worker's end are kept with its exit.
const lastLines = 10

// lastWords are the last lines of a worker that has ended, fit to be shown.
func lastWords(o output) []string {
	if o == nil {
		return nil
	}
	words := o.LastWords(lastLines)
	for i := range words {
		words[i] = printable(words[i])
	}
	return words
}

// logReader is what is shown of the reader process; nil without one.
func (r *roleLoop) logReader() *LogReaderStatus {
	if r.reader == nil {
		return nil
	}
	s := r.reader.Status()
	return &LogReaderStatus{PID: s.PID, Restarts: s.Restarts, LastError: printable(s.Error)}
}

// endReader ends the log reader of a role that is not at work.
func endReader(runtimeDir, role string) error {
	if err := logreader.EndAny(filepath.Clean(roleDir(runtimeDir, role))); err != nil {
		return fmt.Errorf("role %s: %w", role, err)
	}
	return nil
}
