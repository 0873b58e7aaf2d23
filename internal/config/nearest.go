package config

import "strings"

// nearest returns the candidate that got was probably meant to be, or "" if
// none is close: at most a third of its letters differ, or one begins with the
// other.
func nearest(got string, candidates []string) string {
	best, bestDistance := "", len(got)/3+1
	folded := fold(got)
	for _, c := range candidates {
		d := distance(folded, fold(c))
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best != "" || len(folded) < 3 {
		return best
	}
	for _, c := range candidates {
		if strings.HasPrefix(fold(c), folded) || len(c) >= 3 && strings.HasPrefix(folded, fold(c)) {
			return c
		}
	}
	return ""
}

// fold makes "maxWorkers", "max-workers" and "max_workers" equal.
func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s))
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
