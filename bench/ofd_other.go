//go:build !linux

package main

import (
	"errors"
	"os"
)

func ofdLocks(*os.File) (runner, error) { return nil, errors.New("this system has none") }
