// Package chart draws small SVG charts for the documentation: a grid of panels with one line each.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Panel is a chart.
type Panel struct {
	Title  string
	Unit   string // of the values; "bytes" are written with prefixes
	Points []Point
	// From is the X at which the relevant part begins. Zero if all of it is relevant.
	From float64
	Note string // shown at the right of the title
}

// Point is a measured value.
type Point struct{ X, Y float64 }

const (
	width, height = 330.0, 150.0
	left, right   = 58.0, 12.0
	top, bottom   = 34.0, 26.0
)

// Draw returns the panels in a grid. The unit of the x axis is shown below each panel.
func Draw(title, xUnit string, columns int, panels []Panel) string {
	columns = min(columns, max(1, len(panels)))
	rows := (len(panels) + columns - 1) / columns
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="%s">`+"\n",
		float64(columns)*width, float64(rows)*height, html.EscapeString(title))
	b.WriteString(style)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	for i := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%g %g)">`+"\n", float64(i%columns)*width, float64(i/columns)*height)
		panels[i].draw(&b, xUnit)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// style follows the colour scheme of the reader.
const style = `<style>
text { font: 11px system-ui, sans-serif; fill: #444 }
.title { font-weight: 600; fill: #111 }
.axis { stroke: #bbb; stroke-width: 1 }
.line { fill: none; stroke: #1c6dd0; stroke-width: 1.5 }
.dot { fill: #1c6dd0 }
.part { fill: #1c6dd0; opacity: .07 }
@media (prefers-color-scheme: dark) {
text { fill: #bbb } .title { fill: #eee } .axis { stroke: #555 } .line { stroke: #6db1ff } .dot { fill: #6db1ff } .part { fill: #6db1ff; opacity: .12 }
}
</style>
`

func (p *Panel) draw(b *strings.Builder, xUnit string) {
	fmt.Fprintf(b, `<text class="title" x="%g" y="16">%s</text>`+"\n", left, html.EscapeString(p.Title))
	if p.Note != "" {
		fmt.Fprintf(b, `<text x="%g" y="16" text-anchor="end">%s</text>`+"\n", width-right, html.EscapeString(p.Note))
	}
	if len(p.Points) == 0 {
		return
	}
	var first, last, most float64 = math.Inf(1), math.Inf(-1), 0
	for _, q := range p.Points {
		first, last, most = min(first, q.X), max(last, q.X), max(most, q.Y)
	}
	if first > 0 && first < last/4 {
		first = 0
	}
	if last == first {
		last = first + 1
	}
	most = roundUp(most)
	x := func(v float64) float64 { return left + (v-first)/(last-first)*(width-left-right) }
	y := func(v float64) float64 { return height - bottom - v/most*(height-top-bottom) }
	if p.From > 0 {
		fmt.Fprintf(b, `<rect class="part" x="%.1f" y="%g" width="%.1f" height="%g"/>`+"\n", x(p.From), top, x(last)-x(p.From), height-top-bottom)
	}
	for _, v := range []float64{0, most / 2, most} {
		fmt.Fprintf(b, `<path class="axis" d="M%g %.1fH%g"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, y(v), width-right, left-5, y(v)+4, amount(v, p.Unit))
	}
	fmt.Fprintf(b, `<text x="%g" y="%g">%s</text><text x="%g" y="%g" text-anchor="end">%s %s</text>`+"\n",
		left, height-8, amount(first, ""), width-right, height-8, amount(last, ""), html.EscapeString(xUnit))
	var path strings.Builder
	for i, q := range p.Points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, x(q.X), y(q.Y))
	}
	fmt.Fprintf(b, `<path class="line" d="%s"/>`+"\n", path.String())
	if len(p.Points) <= 12 {
		for _, q := range p.Points {
			fmt.Fprintf(b, `<circle class="dot" cx="%.1f" cy="%.1f" r="2.5"/>`+"\n", x(q.X), y(q.Y))
		}
	}
}

// roundUp returns the next larger round number for an axis.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	scale := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if v <= step*scale {
			return step * scale
		}
	}
	return 10 * scale
}

// amount formats a value of an axis.
func amount(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T"}
	scale := 0
	for scale < len(prefixes)-1 && math.Abs(v) >= 1000 && (unit == "bytes" || math.Abs(v) >= 10_000) {
		v /= 1000
		scale++
	}
	text := strconv.FormatFloat(v, 'g', 3, 64)
	switch {
	case unit == "bytes":
		return text + " " + prefixes[scale] + "B"
	case unit != "" && v != 0:
		return text + prefixes[scale] + " " + unit
	}
	return text + prefixes[scale]
}
