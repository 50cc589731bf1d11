package admin_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
)

func TestGone(t *testing.T) {
	now := time.Now()
	for silent, want := range map[time.Duration]time.Duration{
		-time.Minute: 0, 0: 0, time.Minute: 0, 61 * time.Second: 61 * time.Second, 7 * 24 * time.Hour: 7 * 24 * time.Hour, 8 * 24 * time.Hour: 0,
	} {
		c := admin.ConsumerStanding{Heard: now.Add(-silent)}
		if got := c.Gone(now); got != want {
			t.Errorf("silent for %s: gone for %s, want %s", silent, got, want)
		}
	}
	if never := new(admin.ConsumerStanding); never.Gone(now) != 0 {
		t.Error("a consumer that was never heard of is gone")
	}
}
