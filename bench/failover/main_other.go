//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench-failover: this needs Linux: it measures what its kernel does when a process dies")
	os.Exit(1)
}
