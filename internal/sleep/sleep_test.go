package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/internal/sleep"
)

func TestFor(t *testing.T) {
	for _, c := range []struct {
		name        string
		d, deadline time.Duration
		want        bool
		took        time.Duration
	}{
		{"whole", time.Second, time.Minute, true, time.Second},
		{"cut short", time.Minute, time.Second, false, time.Second},
		{"no time", 0, time.Second, true, 0},
		{"a time that has passed", -time.Second, time.Second, true, 0},
		{"no time and no context", 0, 0, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				begin := time.Now()
				if got := sleep.For(ctx, c.d); got != c.want || time.Since(begin) != c.took {
					t.Errorf("got %t after %v, want %t after %v", got, time.Since(begin), c.want, c.took)
				}
			})
		})
	}
}
