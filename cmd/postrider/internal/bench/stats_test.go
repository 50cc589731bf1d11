package bench

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(100 - i) // 1 to 100, backwards
	}
	for share, want := range map[float64]int64{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := percentile(hundred, share); got != want {
			t.Errorf("percentile %v is %d, want %d", share, got, want)
		}
	}
	if got := percentile(nil, 0.99); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
	if got := percentile([]int64{7}, 0.5); got != 7 {
		t.Errorf("of one: %d", got)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
	}
}

func TestLeastThird(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 1}, {[]float64{100, 4, 50, 2, 90, 70}, 3}} {
		if got := leastThird(test.values); got != test.want {
			t.Errorf("least third of %v is %v, want %v", test.values, got, test.want)
		}
	}
}

func TestRates(t *testing.T) {
	if got := perSecond(500, 2*time.Second); got != 250 {
		t.Errorf("perSecond: %v", got)
	}
	if got := perSecond(500, 0); got != 0 {
		t.Errorf("perSecond without time: %v", got)
	}
	if got := milliseconds(1_234_567); got != 1.235 {
		t.Errorf("milliseconds: %v", got)
	}
}

func TestBacklogSizes(t *testing.T) {
	for largest, want := range map[int64]int{500: 1, 10_000: 1, 20_000: 2, 1_000_000: 3, 5_000_000: 4} {
		sizes := backlogSizes(largest)
		if len(sizes) != want || sizes[len(sizes)-1] != largest {
			t.Errorf("up to %d: %v, want %d sizes", largest, sizes, want)
		}
	}
}

func TestAdded(t *testing.T) {
	if got := added(120, 140, 100); got != 0.5 {
		t.Errorf("half of what the other adds: %v", got)
	}
	if got := added(120, 100, 100); got != 0 {
		t.Errorf("beside one that adds nothing: %v", got)
	}
}
