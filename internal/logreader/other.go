//go:build unix && !linux

package logreader

import "github.com/standbyd/standbyd/internal/capture"

// Stage returns: there are no readers on this system.
func Stage() {}

// Supported: there are none.
func Supported() bool { return false }

// EndAny has nothing to do.
func EndAny(string) error { return nil }

// Status of no reader.
type Status struct {
	PID      int    `json:"pid"`
	Restarts int    `json:"restarts"`
	Error    string `json:"last_error,omitempty"`
}

// Reader is never made on this system.
type Reader struct{}

// New must not be called.
func New(string, string, func(string)) *Reader { panic("logreader: not supported on this system") }

func (*Reader) Start()                                  {}
func (*Reader) Renew()                                  {}
func (*Reader) End()                                    {}
func (*Reader) Leave()                                  {}
func (*Reader) Status() Status                          { return Status{} }
func (*Reader) Log(_, _ string, _ capture.Options) *Log { return &Log{} }

// Log is never made on this system.
type Log struct{}

func (*Log) Track(string) error         { return nil }
func (*Log) TrackOutput(int)            {}
func (*Log) SetOptions(capture.Options) {}
func (*Log) LastWords(int) []string     { return nil }
func (*Log) Tail(int) []string          { return nil }
func (*Log) Note(string)                {}
func (*Log) Dropped() uint64            { return 0 }
func (*Log) Close() error               { return nil }
