package report

import (
	"cmp"
	"fmt"
	"slices"
)

// mostKinds is the number of bars in the figure of duplicates; all other kinds share one bar.
const mostKinds = 16

// duplicatesPicture draws the number of duplicates by kind of fault.
func duplicatesPicture(kinds []kind, events int64) string {
	var some []kind
	var all, highest int64
	for _, k := range kinds {
		all += k.duplicates
		if k.duplicates > 0 {
			some = append(some, k)
		}
	}
	slices.SortStableFunc(some, func(a, b kind) int { return cmp.Compare(b.duplicates, a.duplicates) })
	if len(some) > mostKinds {
		rest := kind{name: fmt.Sprintf("%d other kinds", len(some)-mostKinds+1)}
		for _, k := range some[mostKinds-1:] {
			rest.duplicates += k.duplicates
			rest.faults += k.faults
		}
		some = append(some[:mostKinds-1:mostKinds-1], rest)
	}
	for _, k := range some {
		highest = max(highest, k.duplicates)
	}
	const left, right, row = 200.0, 640.0, 22.0
	c := &canvas{height: 84 + max(1, len(some))*int(row)}
	if len(some) == 0 {
		c.text("small", margin, 72, "There were none.")
	}
	for i, k := range some {
		y := 60 + float64(i)*row
		bar, label := "relay", fmt.Sprintf("%s, by %s", number(k.duplicates), count(k.faults, "fault"))
		if k.name == unexplained {
			bar, label = "bad", number(k.duplicates)+", not explained"
		}
		length := float64(k.duplicates) / float64(highest) * (right - left)
		c.text("end", left-10, y+12, k.name)
		c.rect(bar, left, y, max(1, length), row-7)
		c.text("small", left+length+8, y+12, label)
	}
	return c.svg("Duplicates by the kind of fault", fmt.Sprintf("%d duplicates of %d messages, as bars by the kind of fault that caused them.", all, events))
}
