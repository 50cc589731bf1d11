package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// Dimensions of the timeline.
const (
	plotLeft  = 104.0
	plotRight = width - margin - 12.0
	rowHeight = 18.0
	panel     = 84.0 // height of a curve
)

// bar is a fault on its row.
type bar struct {
	row      string
	from, to time.Time
}

// timelinePicture draws the faults of a run by what they touched, and the backlog below them.
func timelinePicture(run Run) string {
	begin, end := extent(run)
	bars := faultBars(run.Timeline, end)
	rows := rowNames(bars)
	x := func(at time.Time) float64 {
		part := float64(at.Sub(begin)) / float64(end.Sub(begin))
		return plotLeft + min(1, max(0, part))*(plotRight-plotLeft)
	}
	const top = 64.0
	ages := top + float64(len(rows))*rowHeight + 40
	waiting := ages + panel + 40
	c := &canvas{height: int(waiting + panel + 48)}
	c.timeAxis(begin, end, x, top-8, waiting+panel)
	for i, row := range rows {
		y := top + float64(i)*rowHeight
		c.text("end", plotLeft-10, y+12, row)
		var path strings.Builder
		for _, b := range bars {
			if b.row == row {
				length := max(1.2, x(b.to)-x(b.from))
				fmt.Fprintf(&path, "M%.1f %.1fh%.1fv12h-%.1fz", x(b.from), y+2, length, length)
			}
		}
		c.addf(`<path class="%s" d="%s"/>`, rowClass(row), path.String())
	}
	c.curve("age", "oldest message, s", run.Samples, x, ages, func(b record.Backlog) float64 { return b.OldestSeconds })
	c.curve("area", "messages waiting", run.Samples, x, waiting, func(b record.Backlog) float64 { return float64(b.Messages) })
	return c.svg(fmt.Sprintf("Run %s: faults, and what waited", run.ID), fmt.Sprintf(
		"%d faults in %.0f minutes, each as a bar in the row of what it touched; below, the age of the oldest waiting message and the number of waiting messages.",
		run.Verdict.Counts.Faults, end.Sub(begin).Minutes()))
}

// extent returns the begin and the end of a run, as far as they are known.
func extent(run Run) (begin, end time.Time) {
	begin, end = run.Begin, run.End
	for _, s := range run.Samples {
		if begin.IsZero() {
			begin = s.At
		}
		if run.End.IsZero() && s.At.After(end) {
			end = s.At
		}
	}
	if !end.After(begin) {
		end = begin.Add(time.Minute)
	}
	return begin, end
}

// faultBars puts each fault on the rows of everything that it touched.
func faultBars(timeline []record.Event, end time.Time) (bars []bar) {
	healed := map[int]time.Time{}
	for _, e := range timeline {
		if e.Phase == record.Heal {
			healed[e.Fault] = e.At
		}
	}
	for _, e := range timeline {
		if e.Phase != record.Begin {
			continue
		}
		to, ok := healed[e.Fault]
		if !ok {
			to = end
		}
		touches := e.Touches
		if len(touches) == 0 {
			touches = []string{"others"}
		}
		for _, row := range touches {
			bars = append(bars, bar{row, e.At, to})
		}
	}
	return bars
}

// rowNames lists the database and relays first, then destinations, then clients.
func rowNames(bars []bar) (rows []string) {
	for _, b := range bars {
		if !slices.Contains(rows, b.row) {
			rows = append(rows, b.row)
		}
	}
	rank := map[string]int{"database": 0, "relay": 1, "destination": 2, "client": 3, "none": 4}
	slices.SortFunc(rows, func(a, b string) int {
		if by := rank[rowClass(a)] - rank[rowClass(b)]; by != 0 {
			return by
		}
		return strings.Compare(a, b)
	})
	return rows
}

func rowClass(row string) string {
	switch row {
	case record.Database, record.Relay:
		return row
	case record.Producer, record.Consumer:
		return "client"
	case "others":
		return "none"
	}
	return "destination"
}

// timeAxis draws a line every few minutes.
func (c *canvas) timeAxis(begin, end time.Time, x func(time.Time) float64, top, bottom float64) {
	step := time.Duration(nice(end.Sub(begin).Minutes()/8)) * time.Minute
	for at := time.Duration(0); at <= end.Sub(begin); at += step {
		c.addf(`<path class="grid" d="M%.1f %.1fV%.1f"/>`, x(begin.Add(at)), top, bottom)
		c.text("small mid", x(begin.Add(at)), bottom+20, fmt.Sprintf("%.0f min", at.Minutes()))
	}
}

// curve draws a value over time: the maximum of all samples at one position. Where the database
// could not be queried there is a gap.
func (c *canvas) curve(class, name string, samples []record.Sample, x func(time.Time) float64, top float64, of func(record.Backlog) float64) {
	bottom := top + panel
	type point struct{ x, y float64 }
	var parts [][]point
	highest, open := 0.0, false
	for _, s := range samples {
		if s.Backlog == nil {
			open = false
			continue
		}
		value, at := of(*s.Backlog), math.Round(x(s.At))
		highest = max(highest, value)
		if !open {
			parts, open = append(parts, nil), true
		}
		part := &parts[len(parts)-1]
		if n := len(*part); n > 0 && (*part)[n-1].x == at {
			(*part)[n-1].y = max((*part)[n-1].y, value)
		} else {
			*part = append(*part, point{at, value})
		}
	}
	scale := nice(highest)
	c.addf(`<path class="grid" d="M%.1f %.1fH%dM%.1f %.1fH%d"/>`, plotLeft, bottom, int(plotRight), plotLeft, top, int(plotRight))
	c.text("", plotLeft, top-8, name)
	c.text("small end", plotLeft-10, bottom+4, "0")
	c.text("small end", plotLeft-10, top+4, number(int64(scale)))
	for _, part := range parts {
		var path strings.Builder
		fmt.Fprintf(&path, "M%.0f %.1f", part[0].x, bottom)
		for _, p := range part {
			fmt.Fprintf(&path, "L%.0f %.1f", p.x, bottom-p.y/scale*panel)
		}
		fmt.Fprintf(&path, "V%.1fz", bottom)
		c.addf(`<path class="%s" d="%s"/>`, class, path.String())
	}
}
