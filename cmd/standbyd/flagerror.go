package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// flagError says of a flag that cannot be read what it takes, in place of how
// the reading failed.
func flagError(c *cobra.Command, err error) error {
	text := err.Error()
	if n, ok := negative(text); ok && c.Name() == "scale" {
		return tooFew(n, "ROLE")
	}
	what, _, isNumber := strings.Cut(text, ": strconv.Parse")
	if isNumber {
		takes := "a whole number is needed, such as 5"
		switch {
		case errors.Is(err, strconv.ErrRange):
			takes = "the number is too large"
		case strings.Contains(text, "ParseFloat"):
			takes = "a number is needed, such as 5 or 2.5"
		case strings.Contains(text, "ParseBool"):
			takes = "true or false is needed"
		}
		text = what + ": " + takes
	} else if what, _, isTime := strings.Cut(text, ": time: "); isTime {
		text = what + ": a time with a unit is needed, such as 500ms, 5s or 1m30s"
	}
	return &usageError{text}
}

// negative is the number that was taken for flags: "unknown shorthand flag: '1' in -1".
func negative(text string) (int, bool) {
	_, arg, ok := strings.Cut(text, " in -")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(arg)
	return -n, err == nil
}

func tooFew(n int, role string) error {
	return usagef("%d is no number of workers: at least 1; `standbyd stop %s` stops a role", n, role)
}

// countOfWorkers reads the argument of scale.
func countOfWorkers(arg, role string) (int, error) {
	n, err := strconv.Atoi(arg)
	switch {
	case err != nil:
		return 0, usagef("%q is no number of workers: a whole number is needed, such as 3", arg)
	case n < 1:
		return 0, tooFew(n, role)
	}
	return n, nil
}
