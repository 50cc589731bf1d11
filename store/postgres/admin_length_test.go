package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestAdminAtLength prints how long the admin API takes with ten million messages and a million
// dead letters.
func TestAdminAtLength(t *testing.T) {
	t.Parallel()
	need.Long(t, "10 million messages")
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		size := 10_000_000
		a := newArchive(t, dsn, size, 10)
		a.grow(size)
		d := a.db.Admin()
		old, dead := a.idAt(size/7), admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}
		page := func(f admin.Filter) func() (any, error) {
			return func() (any, error) {
				p, err := d.Messages(t.Context(), "f", f, 0, 100)
				return fmt.Sprintf("%d messages, back to %v", len(p.Items), p.Until), err
			}
		}
		for _, c := range []struct {
			name string
			do   func() (any, error)
		}{
			{"Gauges", func() (any, error) { s, err := d.Gauges(t.Context()); return s.Feeds[0].Pending, err }},
			{"Health", func() (any, error) { v, err := d.Health(t.Context()); return v.Size, err }},
			{"Messages", page(admin.Filter{})},
			{"Messages of a type that is rare", page(admin.Filter{Type: "t-rare"})},
			{"Messages of a topic that is rare", page(admin.Filter{Topic: "rare"})},
			{"Messages of a tenant", page(admin.Filter{Tenant: "tenant7"})},
			{"Messages of a tenant that is rare", page(admin.Filter{Tenant: "rare"})},
			{"Messages of a key", page(admin.Filter{Key: "k77"})},
			{"Messages of an hour", page(admin.Filter{Since: time.Now().Add(-71 * time.Hour), Until: time.Now().Add(-70 * time.Hour)})},
			{"Messages that are dead", page(dead)},
			{"Messages that are pending", page(admin.Filter{Statuses: []feeds.Status{feeds.StatusPending}})},
			{"Messages by ID", page(admin.Filter{ID: old})},
			{"Messages by an ID without time", page(admin.Filter{ID: postrider.ID{1}})},
			{"Journey", func() (any, error) { j, err := d.Journey(t.Context(), old); return j.Seq, err }},
			{"List of dead letters", func() (any, error) { l, err := d.List(t.Context(), dead, nil, 100); return len(l), err }},
			{"Groups", func() (any, error) { g, err := d.Groups(t.Context(), dead, 2000, 20); return len(g.Groups), err }},
			{"Count", func() (any, error) { return d.Count(t.Context(), dead, 0) }},
			{"Feeds", func() (any, error) { f, err := d.ListFeeds(t.Context()); return len(f), err }},
		} {
			for range 3 {
				start := time.Now()
				got, err := c.do()
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				t.Logf("%-34s %10s  %v", c.name, time.Since(start).Round(100*time.Microsecond), got)
			}
		}
	})
}
