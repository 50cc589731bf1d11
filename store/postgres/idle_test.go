package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestIdleRelay verifies that an idle relay sends at most 60 statements a second, however many
// shards it owns.
func TestIdleRelay(t *testing.T) {
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		for _, shards := range []int{1, 8, 128} {
			t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
				t.Parallel()
				testIdleRelay(t, dsn, shards)
			})
		}
	})
}

func testIdleRelay(t *testing.T, dsn string, shards int) {
	h := newHouse(t, dsn, postgres.Layout{Shards: shards})
	var wire wire
	db := must(postgres.Open(h.wired(dsn, &wire), h.cfg))(t)
	r, err := relay.New(db.Feeds(), discard.New(), relay.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()

	const span = 3 * time.Second
	tick := time.NewTicker(span)
	defer tick.Stop()
	<-tick.C // it owns its shards, and polling has slowed down
	before := wire.count()
	<-tick.C
	statements := float64(wire.count()-before) / span.Seconds()
	t.Logf("%.1f statements/s", statements)
	if held := r.Stats().Shards; held != shards || statements < 1 || statements > 60 {
		t.Errorf("%d shards of %d are held with %.1f statements/s, want 1 to 60", held, shards, statements)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turns
}
