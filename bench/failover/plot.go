//go:build linux

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// plotName is the drawing's file, beside the page.
const plotName = "bench-failover.svg"

const (
	plotLeft   = 330
	plotRight  = 20
	plotDecade = 85
	plotLine   = 18
)

// drawing shows every measured row as a line from p50 to p99 on a log scale,
// one panel for each scenario. The colours are readable on light and dark.
func drawing(all results) string {
	var b strings.Builder
	width := plotLeft + decades*plotDecade + plotRight
	x := func(us float64) float64 {
		return plotLeft + plotDecade*max(0, min(math.Log10(us)-1, decades))
	}
	y := 24
	for _, sc := range scenarios() {
		var lines []row
		for _, r := range rows() {
			if !math.IsNaN(all.at(sc.name, r.name, 0.5)) {
				lines = append(lines, r)
			}
		}
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, `<text x="8" y="%d" class="h">%s</text>`+"\n", y, html.EscapeString(sc.name))
		y += 10
		for d := range decades + 1 {
			at := plotLeft + d*plotDecade
			fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" class="g"/><text x="%d" y="%d" class="a">%s</text>`+"\n",
				at, y, at, y+len(lines)*plotLine+4, at, y-4, span(math.Pow(10, float64(d+1))))
		}
		for _, r := range lines {
			y += plotLine
			kind := "p"
			if strings.HasPrefix(r.name, "standbyd") && !r.solo || strings.HasPrefix(r.name, "coord") {
				kind = "o"
			}
			from, to, most := all.at(sc.name, r.name, 0.5), all.at(sc.name, r.name, 0.99), all.at(sc.name, r.name, 1)
			fmt.Fprintf(&b, `<text x="%d" y="%d" class="n">%s</text><line x1="%.1f" y1="%d" x2="%.1f" y2="%d" class="%s"/><circle cx="%.1f" cy="%d" r="4" class="%s"><title>%s</title></circle><line x1="%.1f" y1="%d" x2="%.1f" y2="%d" class="%s"/>`+"\n",
				plotLeft-10, y, html.EscapeString(r.name), x(from), y-4, x(to), y-4, kind, x(from), y-4, kind,
				html.EscapeString(fmt.Sprintf("%s: p50 %s, p99 %s, max %s", r.name, span(from), span(to), span(most))), x(most), y-8, x(most), y, kind)
		}
		y += 40
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">
<style>.h{font-weight:bold;fill:#888}.n{text-anchor:end;fill:#888}.a{text-anchor:middle;fill:#888;font-size:10px}.g{stroke:#8884}.p{stroke:#d9822b;fill:#d9822b;stroke-width:2}.o{stroke:#2b82d9;fill:#2b82d9;stroke-width:2}</style>
%s<text x="8" y="%d" fill="#888">circle: p50; line: to the p99; tick: the slowest round; blue: standbyd and its library, orange: the others</text>
</svg>
`, width, y+12, b.String(), y)
}
