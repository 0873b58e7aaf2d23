// Package wording says numbers and lists in sentences for people, the same way
// wherever the project prints them.
package wording

import (
	"fmt"
	"strings"
)

// fewNames is how many of a list are named.
const fewNames = 6

// Few names the first ones of a list, and how many more there are.
func Few(names []string) string {
	if len(names) <= fewNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:fewNames], ", "), len(names)-fewNames)
}

// Count is "1 role", "2 roles".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
