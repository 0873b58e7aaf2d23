package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// form is the -o flag.
type form struct{ name string }

func (f *form) json() bool { return f.name == "json" }

// addForm gives a command -o. The words are the forms it knows, the default first.
func addForm(c *cobra.Command, words ...string) *form {
	f := &form{}
	c.Flags().StringVarP(&f.name, "output", "o", words[0], "form of the output: "+strings.Join(words, " or "))
	check := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		for _, w := range words {
			if f.name == w {
				if check != nil {
					return check(c, args)
				}
				return nil
			}
		}
		return usagef("-o %s: there are %s", f.name, strings.Join(words, " and "))
	}
	c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	return f
}

// printJSON writes one value on one line.
func printJSON(w io.Writer, v any) error {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// paint colours text on terminals.
type paint struct{ on bool }

const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func painter(w io.Writer) paint {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return paint{}
	}
	return paint{isTerminal(w)}
}

func (p paint) as(code, s string) string {
	if !p.on || code == "" || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// isTerminal tells whether w is a terminal that a person looks at.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isTTY(int(f.Fd()))
}
