package main

import "github.com/spf13/cobra"

// allLines is all of the past for the readers of logs and events.
const allLines = -1

// lastLines is the flag -n of the verbs that show what was. Follow is nil for
// one that does not go on. The result is only true after the flags are read.
func lastLines(c *cobra.Command, otherwise int, what string, follow *bool) func() (int, error) {
	meaning := "0: all"
	if follow != nil {
		meaning += "; with -f, 0: only what comes"
	}
	n := c.Flags().IntP("lines", "n", otherwise, what+" ("+meaning+")")
	return func() (int, error) {
		switch {
		case *n < 0:
			return 0, usagef("-n %d: a number of lines is 0 (%s) or more", *n, meaning[len("0: "):])
		case *n > 0:
			return *n, nil
		case follow != nil && *follow && c.Flags().Changed("lines"):
			return 0, nil
		}
		return allLines, nil
	}
}
