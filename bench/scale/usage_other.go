//go:build !linux

package main

import (
	"errors"
	"runtime"
	"time"
)

type usage struct {
	cpu            time.Duration
	resident       int64
	threads, files int
}

func usageOf(int) (usage, error) { return usage{}, errors.New("needs /proc, which Linux has") }

func processesOf(string) []int { return nil }

func kernel() string { return runtime.GOOS }
