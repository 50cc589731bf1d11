package plan

import (
	"math/rand/v2"
	"testing"
)

func TestCurve(t *testing.T) {
	c := newCurve([]point{{10, 4}, {0, 2}, {20, 3}, {40, 8}}) // the dip at 20 is noise
	for x, want := range map[float64]float64{-1: 2, 0: 2, 5: 3, 10: 4, 15: 4, 20: 4, 30: 6, 40: 8, 50: 10} {
		near(t, "the cost", c.at(x), want)
	}
	near(t, "no curve", curve(nil).at(3), 0)
	near(t, "one point", newCurve([]point{{10, 5}}).at(20), 10)
	near(t, "the end", c.end(), 40)
}

func TestCurveNeverFalls(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		var points []point
		for range random.IntN(8) {
			points = append(points, point{float64(random.IntN(10)), random.NormFloat64() * 10})
		}
		c := newCurve(points)
		before := 0.0
		for x := -1.0; x < 25; x += 0.25 {
			if y := c.at(x); y < before-1e-9 {
				t.Fatalf("%v falls at %g from %g to %g", points, x, before, y)
			} else {
				before = y
			}
		}
	}
}
