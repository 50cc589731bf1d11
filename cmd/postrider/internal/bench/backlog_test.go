package bench

import (
	"testing"
	"time"
)

func TestTrack(t *testing.T) {
	var even, slowing track
	for n := range 100 {
		done := int64(n+1) * 10
		even.steps = append(even.steps, step{done, time.Duration(n+1) * time.Millisecond})
		at := time.Duration(n+1) * time.Millisecond
		if n >= 90 {
			at += time.Duration(n-89) * 3 * time.Millisecond // four times as long
		}
		slowing.steps = append(slowing.steps, step{done, at})
	}
	if got := even.slope(); rounded(got, 6) != 1 {
		t.Errorf("an even drain has slope %v", got)
	}
	if got := slowing.slope(); rounded(got, 6) != 4 {
		t.Errorf("a drain that becomes four times as slow has slope %v", got)
	}
	if got := even.cost(); got != 100 {
		t.Errorf("cost: %v µs", got)
	}
	if got := (track{steps: []step{{10, time.Millisecond}}}).slope(); got != 0 {
		t.Errorf("of a single read: %v", got)
	}
	for size, want := range map[int64]int{1: 1, 1000: 20, 20_000: 400, 5_000_000: samplePage} {
		if got := drainPage(size); got != want {
			t.Errorf("page of %d: %d, want %d", size, got, want)
		}
	}
}
