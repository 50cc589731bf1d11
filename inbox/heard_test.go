package inbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// TestHeard checks that an inbox that runs sends heartbeats, and that one that has stopped is
// reported as gone.
func TestHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Process: "host:1"})
		h.Handle("t", func(context.Context, tx, postrider.Message) error { return nil })
		gone := func() time.Duration {
			s, err := h.store.Gauges(t.Context())
			if err != nil || len(s.Consumers) != 1 || s.Consumers[0].Process != "host:1" {
				t.Fatalf("%+v, %v", s, err)
			}
			return s.Consumers[0].Gone(s.At)
		}
		stop := h.run()
		time.Sleep(time.Hour)
		if gone() != 0 {
			t.Error("the consumer is reported as gone while it runs")
		}
		stop()
		time.Sleep(2 * time.Minute)
		if g := gone(); g < 2*time.Minute || g > 3*time.Minute {
			t.Errorf("the consumer stopped two minutes ago and is reported as gone for %s", g)
		}
	})
}
