package plan

import (
	"cmp"
	"slices"
)

// curve is a cost as a function of a quantity: measured points, with linear interpolation. It is
// made monotonic, because a decrease is measurement noise.
type curve []point

type point struct{ x, y float64 }

func newCurve(points []point) curve {
	c := slices.Clone(points)
	slices.SortFunc(c, func(a, b point) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) })
	c = slices.CompactFunc(c, func(a, b point) bool { return a.x == b.x })
	for i := range c {
		c[i].y = max(c[i].y, 0)
		if i > 0 {
			c[i].y = max(c[i].y, c[i-1].y)
		}
	}
	return c
}

// at returns the cost of x. Below the first point it is that of the first point. Beyond the last
// point it extrapolates with the steeper of the last slope and the average slope, so that it does
// not underestimate.
func (c curve) at(x float64) float64 {
	switch {
	case len(c) == 0:
		return 0
	case x <= c[0].x:
		return c[0].y
	}
	i, _ := slices.BinarySearchFunc(c, x, func(p point, x float64) int { return cmp.Compare(p.x, x) })
	if i < len(c) {
		a, b := c[i-1], c[i]
		return a.y + (b.y-a.y)*(x-a.x)/(b.x-a.x)
	}
	last := c[len(c)-1]
	slope := 0.0
	if last.x > 0 {
		slope = last.y / last.x
	}
	if len(c) > 1 {
		before := c[len(c)-2]
		slope = max(slope, (last.y-before.y)/(last.x-before.x))
	}
	return last.y + slope*(x-last.x)
}

// end returns the largest measured quantity.
func (c curve) end() float64 {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].x
}
