package trace_test

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
)

// Positions in a figure, in pixels.
const (
	width     = 880
	labels    = 20  // names of services
	names     = 88  // names of spans
	left      = 310 // start of the time axis
	right     = 800 // its end; the last numbers need room
	top       = 100 // the first row
	rowHeight = 28
	barHeight = 14
	gap       = 44 // between the trace and the relay's calls
)

// row is a span with its position.
type row struct {
	span
	depth  int
	parent int // index of its row, or -1
	y      int // its center
	x, end float64
}

// picture is a waterfall diagram: the spans of one trace as a tree, and below them linked spans of
// other traces.
type picture struct {
	rows    []row
	calls   int // index of the first row outside the trace
	begin   time.Time
	length  time.Duration
	colours map[string]int // by service
}

// newPicture lays out spans, which are in order of their start, the root first.
func newPicture(spans []span) *picture {
	p := &picture{begin: spans[0].start, colours: make(map[string]int)}
	for _, s := range spans {
		p.length = max(p.length, s.end.Sub(p.begin))
	}
	p.add(spans, spans[0], 0, -1)
	p.calls = len(p.rows)
	for _, s := range spans {
		if s.trace != spans[0].trace {
			p.add(spans, s, 0, -1)
		}
	}
	return p
}

func (p *picture) add(spans []span, s span, depth, parent int) {
	if _, ok := p.colours[s.service]; !ok {
		p.colours[s.service] = len(p.colours)
	}
	at := len(p.rows)
	y := top + at*rowHeight + rowHeight/2
	if p.calls > 0 {
		y += gap
	}
	x, end := p.at(s.start), p.at(s.end)
	p.rows = append(p.rows, row{s, depth, parent, y, x, max(end, x+3)})
	for _, child := range spans {
		if child.parent == s.id && child.trace == s.trace {
			p.add(spans, child, depth+1, at)
		}
	}
}

func (p *picture) at(t time.Time) float64 {
	return left + float64(t.Sub(p.begin))/float64(p.length)*(right-left)
}

// row returns the row of a span, or nil if it is not shown.
func (p *picture) row(id string) *row {
	if i := slices.IndexFunc(p.rows, func(r row) bool { return r.id == id }); i >= 0 {
		return &p.rows[i]
	}
	return nil
}

// style has colors for light and dark themes.
const style = `
  text { font: 12.5px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink) }
  .title { font-size: 17px; font-weight: 600 } .soft { fill: var(--soft); font-size: 11.5px }
  .number { fill: var(--soft); font-size: 11px; font-variant-numeric: tabular-nums; paint-order: stroke; stroke: var(--paper); stroke-width: 4px }
  .striped { stroke: var(--stripe) }
  .paper { fill: var(--paper); stroke: var(--line) } .stripe { fill: var(--stripe) }
  .grid { stroke: var(--line) } .tree { stroke: var(--faint); fill: none }
  .link { stroke: var(--link); stroke-width: 1.4; stroke-dasharray: 1.5 4; stroke-linecap: round; fill: none } .head { fill: var(--link) }
  .s0 { fill: var(--s0) } .s1 { fill: var(--s1) } .s2 { fill: var(--s2) } .s3 { fill: var(--s3) } .service { font-size: 11.5px; font-weight: 600 }
  .failed { stroke: #d1242f; stroke-width: 2 }
  svg { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d8dee4; --faint: #b6bfc8; --stripe: #f6f8fa; --link: #6e7781;
        --s0: #2563c9; --s1: #b75e0a; --s2: #15803d; --s3: #8b3fc0 }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --line: #30363d; --faint: #4b535d; --stripe: #151b23; --link: #9ea7b3;
          --s0: #6ea8fe; --s1: #f0a04b; --s2: #4cc38a; --s3: #c893f0 }
  }
`

// svg renders the figure.
func (p *picture) svg(title, subtitle string) string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	bottom := p.rows[len(p.rows)-1].y + rowHeight/2
	height := bottom + 40
	w(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s, %s">`,
		width, height, width, height, html.EscapeString(title), subtitle)
	w(`<style>%s</style>`, style)
	w(`<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0.5 L8 4 L0 7.5 z"/></marker></defs>`)
	w(`<rect class="paper" x="0.5" y="0.5" width="%d" height="%d" rx="10"/>`, width-1, height-1)
	w(`<text class="title" x="%d" y="34">%s</text>`, labels, html.EscapeString(title))
	w(`<text class="soft" x="%d" y="54">%s</text>`, labels, subtitle)
	w(`<text class="soft" x="%d" y="34" text-anchor="end">trace %s…  ·  %d spans  ·  %s</text>`,
		width-labels, p.rows[0].trace[:12], p.calls, short(p.length))
	p.axis(w, bottom)
	for i := range p.rows {
		p.bar(w, i)
	}
	p.arrows(w)
	for i := range p.rows {
		p.duration(w, i)
	}
	w(`<path class="link" d="M%d %d h34" marker-end="url(#head)"/>`, labels, height-20)
	w(`<text class="soft" x="%d" y="%d">link between spans of different traces</text>`, labels+44, height-16)
	w(`</svg>`)
	return b.String()
}

// axis draws the time axis, and stripes for the rows.
func (p *picture) axis(w func(string, ...any), bottom int) {
	for i, r := range p.rows {
		if i%2 == 0 {
			w(`<rect class="stripe" x="1" y="%d" width="%d" height="%d"/>`, r.y-rowHeight/2, width-2, rowHeight)
		}
	}
	step := time.Millisecond
	for _, factor := range []int{2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000} {
		if p.length/step > 7 {
			step = time.Duration(factor) * time.Millisecond
		}
	}
	for at := time.Duration(0); at <= p.length; at += step {
		x := p.at(p.begin.Add(at))
		w(`<path class="grid" d="M%.1f %d V%d"/><text class="number" x="%.1f" y="%d" text-anchor="middle">%d ms</text>`,
			x, top-6, bottom, x, top-12, at.Milliseconds())
	}
	w(`<text class="soft" x="%d" y="%d">The relay's calls, each a trace of its own</text>`, labels, p.rows[p.calls].y-rowHeight/2-12)
}

func (p *picture) bar(w func(string, ...any), i int) {
	r := &p.rows[i]
	x := names + 14*r.depth
	if r.parent >= 0 {
		from := p.rows[r.parent]
		elbow := names + 14*from.depth + 4
		w(`<path class="tree" d="M%d %d V%d H%d"/>`, elbow, from.y+8, r.y, x-3)
	}
	class := fmt.Sprintf("s%d", p.colours[r.service]%4)
	w(`<text class="service %s" x="%d" y="%d">%s</text>`, class, labels, r.y+4, html.EscapeString(r.service))
	w(`<text x="%d" y="%d">%s</text>`, x, r.y+4, html.EscapeString(r.name))
	if r.failed {
		class += " failed"
	}
	w(`<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="3"><title>%s: %s, %s, %s</title></rect>`,
		class, r.x, r.y-barHeight/2, r.end-r.x, barHeight, html.EscapeString(r.service), html.EscapeString(r.name), r.kind, short(r.took()))
}

func (r *row) took() time.Duration { return r.span.end.Sub(r.start) }

func (p *picture) duration(w func(string, ...any), i int) {
	r, class := &p.rows[i], "number"
	if i%2 == 0 {
		class += " striped"
	}
	w(`<text class="%s" x="%.1f" y="%d">%s</text>`, class, r.end+6, r.y+4, short(r.took()))
}

// arrows draws the links to other traces.
func (p *picture) arrows(w func(string, ...any)) {
	for _, from := range p.rows {
		for _, id := range from.links {
			to := p.row(id)
			if to == nil || to.trace == from.trace {
				continue
			}
			if from.y < to.y { // a message's part of the call: both have the same times
				x := (from.x + from.end) / 2
				w(`<path class="link" d="M%.1f %d V%d" marker-end="url(#head)"/>`, x, from.y+barHeight/2+2, to.y-barHeight/2-2)
				continue
			}
			x := (to.x + to.end) / 2
			y := to.y + barHeight/2 + 2
			w(`<path class="link" d="M%.1f %d C%.1f %d %.1f %d %.1f %d" marker-end="url(#head)"/>`,
				from.x-2, from.y, from.x-24, from.y, x, from.y-30, x, y)
		}
	}
}

func short(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
