package report

import (
	"fmt"

	"github.com/postrider/postrider/test/proof/campaign/oracle"
)

// limits are the upper bounds of the histogram's classes, in seconds; the last class is open.
var limits = []float64{1, 2, 5, 10, 20, 30, 60}

// class returns the histogram class of a duration.
func class(seconds float64) int {
	for i, limit := range limits {
		if seconds < limit {
			return i
		}
	}
	return len(limits)
}

func className(i int) string {
	switch {
	case i == 0:
		return fmt.Sprintf("< %v s", limits[0])
	case i == len(limits):
		return fmt.Sprintf("≥ %v s", limits[i-1])
	}
	return fmt.Sprintf("%v–%v s", limits[i-1], limits[i])
}

// recoveryPicture draws the histogram of recovery times.
func recoveryPicture(recoveries []oracle.Recovery) string {
	since, undisturbed := make([]int, len(limits)+1), make([]int, len(limits)+1)
	highest := 0
	for _, r := range recoveries {
		since[class(r.Seconds)]++
		undisturbed[class(r.Clear)]++
	}
	for i := range since {
		highest = max(highest, since[i], undisturbed[i])
	}
	const top, bottom, left = 96.0, 286.0, 64.0
	c := &canvas{height: 330}
	c.rect("database", left, 52, 12, 12)
	c.text("small", left+18, 62, "since the heal")
	c.rect("destination", left+140, 52, 12, 12)
	c.text("small", left+158, 62, "without another fault under way")
	scale := nice(float64(highest))
	for _, part := range []float64{0, 0.5, 1} {
		y := bottom - part*(bottom-top)
		c.addf(`<path class="grid" d="M%.1f %.1fH%d"/>`, left, y, width-margin)
		c.text("small end", left-8, y+4, fmt.Sprintf("%g", part*scale))
	}
	step := (width - margin - left) / float64(len(since))
	for i := range since {
		x := left + float64(i)*step
		for j, n := range []int{since[i], undisturbed[i]} {
			height := float64(n) / scale * (bottom - top)
			bar := x + step*0.14 + float64(j)*step*0.37
			c.rect([]string{"database", "destination"}[j], bar, bottom-height, step*0.35, height)
			if n > 0 {
				c.text("small mid", bar+step*0.175, bottom-height-5, number(int64(n)))
			}
		}
		c.text("small mid", x+step/2, bottom+20, className(i))
	}
	return c.svg("How long recoveries took", fmt.Sprintf("A histogram of %d recoveries, from less than %v seconds to %v seconds and more.",
		len(recoveries), limits[0], limits[len(limits)-1]))
}
