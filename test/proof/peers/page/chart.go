package page

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/postrider/postrider/test/proof/peers/result"
)

// chart has a group of bars for each peer and a bar for each series, with the range of the
// repetitions.
type chart struct {
	title, about string
	series       []string
	rows         []row
	log          bool // logarithmic axis
	show         func(float64) string
}

type row struct {
	name string
	bars []bar
}

type bar struct {
	value result.Spread
	mark  float64 // a second, smaller value on the same bar; 0: none
}

// Dimensions of a chart in pixels.
const (
	width  = 860
	left   = 170 // of the axis
	right  = 730
	top    = 86
	thick  = 11 // of a bar
	spaced = 14 // from bar to bar
	apart  = 12 // between groups
)

const chartStyle = `  <style>
    text { font-family: system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; font-size: 14px; fill: #1f2328 }
    .title { font-size: 16px; font-weight: 600 }
    .bold { font-weight: 600 }
    .small { font-size: 12px; fill: #59636e }
    .end { text-anchor: end }
    .mid { text-anchor: middle }
    .page { fill: #ffffff; stroke: #d1d9e0 }
    .grid { stroke: #d1d9e0 }
    .range { stroke: #1f2328; stroke-width: 1.5 }
    .mark { stroke: #ffffff; stroke-width: 3 }
    .s0 { fill: #0969da }
    .s1 { fill: #1a7f37 }
    .s2 { fill: #bf8700 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .small { fill: #9198a1 }
      .page { fill: #0d1117; stroke: #3d444d }
      .grid { stroke: #3d444d }
      .range { stroke: #e6edf3 }
      .mark { stroke: #0d1117 }
      .s0 { fill: #4493f8 }
      .s1 { fill: #3fb950 }
      .s2 { fill: #d29922 }
    }
  </style>
`

func (c chart) svg() string {
	group := len(c.series)*spaced + apart
	height := top + len(c.rows)*group + 40
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "  <title id=\"t\">%s</title>\n  <desc id=\"d\">%s</desc>\n%s", html.EscapeString(c.title), html.EscapeString(c.about), chartStyle)
	fmt.Fprintf(&b, "  <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width-1, height-1)
	fmt.Fprintf(&b, "  <text class=\"title\" x=\"24\" y=\"34\">%s</text>\n  <text class=\"small\" x=\"24\" y=\"56\">%s</text>\n",
		html.EscapeString(c.title), html.EscapeString(c.about))
	for i, name := range c.series {
		x := right - 110*(len(c.series)-1-i)
		fmt.Fprintf(&b, "  <rect class=\"s%d\" x=\"%d\" y=\"24\" width=\"12\" height=\"12\"/><text class=\"small\" x=\"%d\" y=\"34\">%s</text>\n", i, x, x+18, name)
	}
	axis := c.axis()
	for _, at := range axis.steps {
		x := axis.place(at)
		fmt.Fprintf(&b, "  <path class=\"grid\" d=\"M%.1f %dV%d\"/><text class=\"small mid\" x=\"%.1f\" y=\"%d\">%s</text>\n", x, top-6, height-34, x, height-16, c.show(at))
	}
	for i, r := range c.rows {
		y := top + i*group
		class := "end"
		if r.name == "postrider" {
			class = "end bold"
		}
		fmt.Fprintf(&b, "  <text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, left-10, y+len(c.series)*spaced/2+4, html.EscapeString(r.name))
		for j, v := range r.bars {
			c.bar(&b, axis, v, j, y+j*spaced)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c chart) bar(b *strings.Builder, axis axis, v bar, series, y int) {
	if v.value.N == 0 {
		fmt.Fprintf(b, "  <text class=\"small\" x=\"%d\" y=\"%d\">not measured</text>\n", left+6, y+thick-1)
		return
	}
	end, middle := axis.place(v.value.Median), float64(y)+thick/2.0
	fmt.Fprintf(b, "  <rect class=\"s%d\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", series, left, y, max(1, end-left), thick)
	if v.mark > 0 {
		x := axis.place(v.mark)
		fmt.Fprintf(b, "  <path class=\"mark\" d=\"M%.1f %dV%d\"/>\n", x, y, y+thick)
	}
	least, most := axis.place(v.value.Min), axis.place(v.value.Max)
	if most-least >= 1 {
		fmt.Fprintf(b, "  <path class=\"range\" d=\"M%.1f %.1fH%.1fM%.1f %dv6M%.1f %dv6\"/>\n", least, middle, most, least, y+3, most, y+3)
	}
	label := c.show(v.value.Median)
	if v.mark > 0 {
		label = c.show(v.mark) + " / " + label
	}
	fmt.Fprintf(b, "  <text class=\"small\" x=\"%.1f\" y=\"%d\">%s</text>\n", max(end, most)+6, y+thick-1, label)
}

// axis maps values to positions.
type axis struct {
	least, most float64
	log         bool
	steps       []float64
}

func (a axis) place(v float64) float64 {
	share := v / a.most
	if a.log {
		share = math.Log(max(v, a.least)/a.least) / math.Log(a.most/a.least)
	}
	return left + share*(right-left)
}

func (c chart) axis() axis {
	least, most := math.Inf(1), 0.0
	for _, r := range c.rows {
		for _, b := range r.bars {
			if b.value.N > 0 {
				most = max(most, b.value.Max)
				least = min(least, max(b.value.Min, 0.1))
				if b.mark > 0 {
					least = min(least, b.mark)
				}
			}
		}
	}
	if most == 0 {
		return axis{most: 1}
	}
	if !c.log {
		a := axis{most: most}
		step := math.Pow10(int(math.Log10(most)))
		for most/step < 4 {
			step /= 2
		}
		for at := 0.0; at <= most; at += step {
			a.steps = append(a.steps, at)
		}
		return a
	}
	a := axis{least: math.Pow(10, math.Floor(math.Log10(least))), most: most * 1.05, log: true}
	for at := a.least; at <= a.most; at *= 10 {
		a.steps = append(a.steps, at)
	}
	return a
}
