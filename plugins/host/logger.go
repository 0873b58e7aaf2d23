package host

import (
	"io"
	"log"

	"github.com/hashicorp/go-hclog"
)

// quietLogger is what go-plugin gets. It reports every end of a process as an
// error, also a wanted one; what matters is in status and in the role's log
// already, so its errors and warnings are details here.
type quietLogger struct{ hclog.Logger }

func (q quietLogger) Error(msg string, args ...any) { q.Debug(msg, args...) }
func (q quietLogger) Warn(msg string, args ...any)  { q.Debug(msg, args...) }
func (q quietLogger) Info(msg string, args ...any)  { q.Debug(msg, args...) }

func (q quietLogger) Log(level hclog.Level, msg string, args ...any) {
	q.Logger.Log(min(level, hclog.Debug), msg, args...)
}
func (q quietLogger) With(args ...any) hclog.Logger  { return quietLogger{q.Logger.With(args...)} }
func (q quietLogger) Named(name string) hclog.Logger { return quietLogger{q.Logger.Named(name)} }
func (q quietLogger) ResetNamed(name string) hclog.Logger {
	return quietLogger{q.Logger.ResetNamed(name)}
}
func (q quietLogger) StandardLogger(o *hclog.StandardLoggerOptions) *log.Logger {
	return q.Logger.StandardLogger(o)
}
func (q quietLogger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return q.Logger.StandardWriter(o)
}
