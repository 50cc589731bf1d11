package bench

import (
	"math"
	"slices"
	"time"
)

// percentile returns the smallest value that at least the given share of all values does not
// exceed, or 0 if there are none. It sorts the values.
func percentile(values []int64, share float64) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(math.Ceil(share * float64(len(values))))
	return values[min(max(rank, 1), len(values))-1]
}

// median returns the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// leastThird returns the mean of the smallest third of the values, at least of one. It estimates
// the undisturbed cost: other work on the machine makes costs higher, never lower.
func leastThird(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	least := sorted[:max(1, len(sorted)/3)]
	var sum float64
	for _, v := range least {
		sum += v
	}
	return sum / float64(len(least))
}

// quotient returns a/b, or 0 for a zero b, because JSON has no infinity.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// added returns the cost of a variant above a base, as a multiple of the cost of another one above
// the same base.
func added(variant, other, base float64) float64 { return quotient(variant-base, other-base) }

// perSecond returns a rate, or 0 without elapsed time.
func perSecond(count int64, elapsed time.Duration) float64 {
	return quotient(float64(count), elapsed.Seconds())
}

// rounded rounds a figure to the significant digits.
func rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

func milliseconds(nanoseconds int64) float64 { return rounded(float64(nanoseconds)/1e6, 3) }
