//go:build linux

package main

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed locks/waiter.c
var waiterSource string

// waiter is the C program, built once; tools is its folder.
var (
	tools  string
	waiter = sync.OnceValues(func() (string, error) {
		gcc, err := exec.LookPath("gcc")
		if err != nil {
			return "", skip("there is no C compiler; apt-get install gcc libc6-dev")
		}
		src, exe := filepath.Join(tools, "waiter.c"), filepath.Join(tools, "waiter")
		if err := os.WriteFile(src, []byte(waiterSource), 0o600); err != nil {
			return "", err
		}
		if out, err := exec.Command(gcc, "-O2", "-Wall", "-pthread", "-o", exe, src).CombinedOutput(); err != nil {
			return "", skip("%s: %v: %s", gcc, err, strings.TrimSpace(string(out)))
		}
		return exe, nil
	})
)
