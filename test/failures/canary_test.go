package failures_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
)

// TestCanary checks that canaries pass through every shard and reach no destination, and that the
// newest one ages when the relay stops.
func TestCanary(t *testing.T) {
	s := newScene(t, newest(t), postgres.Layout{})
	b := &counter{seen: make(map[postrider.ID]int)}
	stop := s.start(b, relay.Config{Canary: 100 * time.Millisecond})
	newest := func() time.Time {
		listed, err := s.admin.ListFeeds(t.Context())
		if err != nil || len(listed) == 0 {
			return time.Time{}
		}
		return listed[0].Canary
	}
	s.eventually(10*time.Second, "a canary has come through", func() bool { return !newest().IsZero() })
	first := newest()
	s.eventually(10*time.Second, "another one has", func() bool { return newest().After(first) })
	stop()
	canary := s.db.Feeds().(feeds.Canary)
	if err := canary.Canary(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	last := newest()
	if err := canary.Canary(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if now := newest(); !now.Equal(last) {
		t.Errorf("a canary of %v has come through without a relay, the last one was of %v", now, last)
	}
	if n := b.count(); n > 0 {
		t.Errorf("%d canaries were published", n)
	}
}
