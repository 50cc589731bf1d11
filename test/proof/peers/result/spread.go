package result

import (
	"math"
	"slices"
)

// Spread is a value over the repetitions.
type Spread struct {
	Median, Min, Max float64
	N                int
}

// Over returns the spread of a value over all cells that f accepts; f selects the value.
func (r *Run) Over(f func(c *Cell) (value float64, ok bool)) Spread {
	var values []float64
	for i := range r.Cells {
		if r.Cells[i].Error != "" {
			continue
		}
		if v, ok := f(&r.Cells[i]); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	return NewSpread(values)
}

// NewSpread returns the spread of values.
func NewSpread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{Median: median(sorted), Min: sorted[0], Max: sorted[len(sorted)-1], N: len(sorted)}
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Percentile returns the smallest value that at least the given share of all values does not
// exceed. It sorts them.
func Percentile(values []int64, share float64) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(math.Ceil(share * float64(len(values))))
	return values[min(max(rank, 1), len(values))-1]
}

// Rounded rounds a value to the significant digits.
func Rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}
