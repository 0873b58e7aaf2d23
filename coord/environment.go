package coord

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Variables of a worker's environment; docs/worker-contract.md is their
// reference.
const (
	envRole       = "STANDBYD_ROLE"
	envWorker     = "STANDBYD_WORKER"
	envIndex      = "STANDBYD_INDEX"
	envPID        = "STANDBYD_PID"
	envSegment    = "STANDBYD_SEGMENT"
	envSegmentFD  = "STANDBYD_SEGMENT_FD"
	envListenFDs  = "STANDBYD_LISTEN_FDS"
	envNotify     = "NOTIFY_SOCKET"
	envPriority   = "STANDBYD_PRIORITY"
	envNoFailover = "STANDBYD_NOFAILOVER"
	envDetect     = "STANDBYD_DETECT"
	envAdmission  = "STANDBYD_ADMISSION"
)

// environment is what a process was told at its launch.
type environment struct {
	role       string
	worker     string
	index      int // -1: none
	segment    string
	segmentFD  int // -1: none
	notify     string
	priority   int32
	noFailover bool
	admission  bool // the supervisor says when this worker may contend
	listeners  []listenFD
}

// listenFD is one socket that was passed on.
type listenFD struct {
	name string
	fd   int
}

// readEnvironment parses what getenv knows. It opens nothing.
func readEnvironment(getenv func(string) string) (environment, error) {
	e := environment{index: -1, segmentFD: -1}
	e.segment = getenv(envSegment)
	if e.segment == "" {
		return e, fmt.Errorf("%w: %s is not set; start this program as a worker of a role (standbyd run), or use coord.JoinFile to run without a supervisor",
			ErrNotSupervised, envSegment)
	}
	if s := getenv(envPID); s != "" && s != strconv.Itoa(os.Getpid()) {
		return e, fmt.Errorf("%w: %s says that pid %s is the worker, and this is pid %d: a child of a worker does not join its role; "+
			"let a wrapper replace itself by the worker (exec in a shell)", ErrNotSupervised, envPID, s, os.Getpid())
	}
	e.role, e.worker = getenv(envRole), getenv(envWorker)
	e.notify = getenv(envNotify)
	if s := getenv(envIndex); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return e, badVariable(envIndex, s, "want the worker's number, from 0")
		}
		e.index = n
	}
	if s := getenv(envSegmentFD); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < firstFD {
			return e, badVariable(envSegmentFD, s, "want a file descriptor from 3 up")
		}
		e.segmentFD = n
	}
	if s := getenv(envPriority); s != "" {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return e, badVariable(envPriority, s, "want a whole number of 32 bits")
		}
		e.priority = int32(n)
	}
	e.noFailover = getenv(envNoFailover) == "1"
	e.admission = getenv(envAdmission) == "1"
	fds, err := parseListenFDs(getenv(envListenFDs))
	if err != nil {
		return e, err
	}
	e.listeners = fds
	return e, nil
}

// firstFD is the first descriptor beyond stdin, stdout and stderr.
const firstFD = 3

// parseListenFDs reads "http=3,admin=4". The order is kept.
func parseListenFDs(s string) ([]listenFD, error) {
	if s == "" {
		return nil, nil
	}
	var fds []listenFD
	for entry := range strings.SplitSeq(s, ",") {
		name, number, ok := strings.Cut(entry, "=")
		fd, err := strconv.Atoi(number)
		if !ok || name == "" || err != nil || fd < firstFD {
			return nil, badVariable(envListenFDs, s, `want NAME=FD entries with commas between, such as "http=3,admin=4"`)
		}
		for _, have := range fds {
			if have.name == name || have.fd == fd {
				return nil, badVariable(envListenFDs, s, "a name or a descriptor is there twice")
			}
		}
		fds = append(fds, listenFD{name, fd})
	}
	return fds, nil
}

func badVariable(name, value, want string) error {
	return fmt.Errorf("%w: %s is %q: %s", ErrEnvironment, name, value, want)
}

// name is how errors, observers and the exit line call this process.
func (e environment) name() string {
	if e.worker != "" {
		return e.worker
	}
	if e.role != "" && e.index >= 0 {
		return e.role + "-" + strconv.Itoa(e.index)
	}
	return "pid " + strconv.Itoa(os.Getpid())
}
