package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Figures have the same width as the others in the documentation.
const (
	width  = 860
	margin = 24
)

// canvas is a figure under construction. It is embedded as an image on light and dark pages, so it
// must be self-contained.
type canvas struct {
	body   strings.Builder
	height int
}

const style = `  <style>
    text { font-family: system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; font-size: 13px; fill: #1f2328 }
    .title { font-size: 16px; font-weight: 600 }
    .small { font-size: 12px; fill: #59636e }
    .mid { text-anchor: middle }
    .end { text-anchor: end }
    .page { fill: #ffffff; stroke: #d1d9e0 }
    .grid { stroke: #d1d9e0; fill: none }
    .database { fill: #0969da }
    .relay { fill: #bc4c00 }
    .destination { fill: #1a7f37 }
    .client { fill: #8250df }
    .none { fill: #8c959f }
    .bad { fill: #cf222e }
    .area { fill: #ddf4ff; stroke: #0969da }
    .age { fill: #fff8c5; stroke: #9a6700 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .small { fill: #9198a1 }
      .page { fill: #0d1117; stroke: #3d444d }
      .grid { stroke: #3d444d }
      .database { fill: #4493f8 }
      .relay { fill: #db6d28 }
      .destination { fill: #3fb950 }
      .client { fill: #ab7df8 }
      .none { fill: #656c76 }
      .bad { fill: #f85149 }
      .area { fill: #121d2f; stroke: #4493f8 }
      .age { fill: #272115; stroke: #d29922 }
    }
  </style>
`

func (c *canvas) addf(format string, args ...any) { fmt.Fprintf(&c.body, "  "+format+"\n", args...) }

func (c *canvas) text(class string, x, y float64, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	c.addf(`<text%s x="%.1f" y="%.1f">%s</text>`, class, x, y, html.EscapeString(text))
}

func (c *canvas) rect(class string, x, y, width, height float64) {
	c.addf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, class, x, y, width, height)
}

// svg returns the whole figure, with a text description for accessibility.
func (c *canvas) svg(title, description string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">`+"\n",
		width, c.height, width, c.height)
	fmt.Fprintf(&b, "  <title id=\"t\">%s</title>\n  <desc id=\"d\">%s</desc>\n%s", html.EscapeString(title), html.EscapeString(description), style)
	fmt.Fprintf(&b, `  <rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", width-1, c.height-1)
	fmt.Fprintf(&b, `  <text class="title" x="%d" y="34">%s</text>`+"\n", margin, html.EscapeString(title))
	b.WriteString(c.body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

// nice returns the next higher number suitable for an axis: 1, 2 or 5 times a power of ten.
func nice(n float64) float64 {
	if n <= 1 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(n)))
	for _, step := range []float64{1, 2, 5} {
		if n <= step*power {
			return step * power
		}
	}
	return 10 * power
}
