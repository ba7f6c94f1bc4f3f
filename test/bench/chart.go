package main

import (
	"fmt"
	"strings"
)

// The measures of a chart, in pixels.
const (
	chartWidth, chartMargin, chartRow = 760, 20, 26
	labelWidth, barWidth, barSpace    = 140, 200, 290 // of the room for a bar, its figure takes what is left
	chartTop                          = 84
)

const chartStyle = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}.head{font-size:15px;font-weight:600}.quiet{fill:#59636e}
.card{fill:#fff;stroke:#d1d9e0}.other{fill:#afb8c1}.ours{fill:#0969da}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet{fill:#9198a1}
.card{fill:#151b23;stroke:#3d444d}.other{fill:#656c76}.ours{fill:#4493f8}}
</style>
`

const (
	charted       = "pairs-64"
	chartedColumn = "pairs/s"
)

// chart draws the rates of lock pairs with 64 callers as bars, in SVG: a panel for each kind of servers, a row for each contender. It has a
// ground of its own, so that it can be read on a light page and on a dark one.
func (f findings) chart() (string, error) {
	var panels []finding
	for _, found := range f {
		if found.experiment == charted {
			panels = append(panels, found)
		}
	}
	if len(panels) == 0 {
		return "", fmt.Errorf("nothing to draw: %s has not been run", charted)
	}
	height := chartTop + chartRow*len(panels[0].table.rows) + chartMargin
	var svg strings.Builder
	fmt.Fprintf(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %[1]d %[2]d\">\n",
		chartWidth, height)
	const title = "Locks acquired and released in a second, by 64 callers, each with a lock of its own"
	fmt.Fprintf(&svg, "<title>%s</title>\n%s", title, chartStyle)
	fmt.Fprintf(&svg, "<rect class=\"card\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", chartWidth-1, height-1)
	fmt.Fprintf(&svg, "<text class=\"head\" x=\"%d\" y=\"32\">%s</text>\n", chartMargin, title)
	for i, row := range panels[0].table.rows {
		fmt.Fprintf(&svg, "<text x=\"%d\" y=\"%d\">%s</text>\n", chartMargin, chartTop+chartRow*i+16, row[0])
	}
	for i, panel := range panels {
		if err := panel.draw(&svg, chartMargin+labelWidth+i*barSpace); err != nil {
			return "", err
		}
	}
	svg.WriteString("</svg>\n")
	return svg.String(), nil
}

// draw draws a panel whose bars begin at left.
func (f finding) draw(svg *strings.Builder, left int) error {
	var fastest float64
	rates := make([]float64, len(f.table.rows))
	for i, row := range f.table.rows {
		var err error
		if rates[i], err = f.table.cell(row[0], chartedColumn); err != nil {
			return err
		}
		fastest = max(fastest, rates[i])
	}
	fmt.Fprintf(svg, "<text class=\"quiet\" x=\"%d\" y=\"%d\">%s</text>\n", left, chartTop-12,
		map[string]string{standalone: "one server", onEnsemble: "an ensemble of three"}[f.on])
	for i, row := range f.table.rows {
		class, top, width := "other", chartTop+chartRow*i, barWidth*rates[i]/fastest
		if strings.HasPrefix(row[0], "sidecar") {
			class = "ours"
		}
		fmt.Fprintf(svg, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"18\" rx=\"2\"/>\n", class, left, top+2, width)
		fmt.Fprintf(svg, "<text class=\"quiet\" x=\"%.1f\" y=\"%d\">%.0f</text>\n", float64(left)+width+6, top+16, rates[i])
	}
	return nil
}
