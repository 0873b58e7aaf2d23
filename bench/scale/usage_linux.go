//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what a process has used, and has.
type usage struct {
	cpu            time.Duration
	resident       int64
	threads, files int
}

// clockTick is the unit of times in /proc: USER_HZ, 100 on every platform that
// Go runs on.
const clockTick = 10 * time.Millisecond

func usageOf(pid int) (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	number := func(i int) int64 { // as proc(5) counts fields
		n, perr := strconv.ParseInt(fields[i-3], 10, 64)
		if perr != nil && err == nil {
			err = perr
		}
		return n
	}
	u.cpu = time.Duration(number(14)+number(15)) * clockTick
	u.threads = int(number(20))
	u.resident = number(24) * int64(os.Getpagesize())
	entries, derr := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	u.files = len(entries)
	if err == nil {
		err = derr
	}
	return u, err
}

// processesOf lists processes of this program whose role's segment is below dir.
func processesOf(dir string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if strings.Contains(string(env), "STANDBYD_SEGMENT="+dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "an unknown kernel"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}
