package postgres_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestJourneyToTheEnd follows a message until only the audit log remembers it.
func TestJourneyToTheEnd(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		d := h.db.Admin()
		id := h.enqueue(1)[0]
		h.deliverAll("f")
		h.exec("SELECT @.receive('billing', '" + id.String() + "')")
		j := h.mustJourney(d, id)
		if l := j.Feeds[0]; l.Status != feeds.StatusPublished || time.Since(l.Settled).Abs() > time.Minute {
			t.Errorf("when it was delivered: %+v", l)
		}
		if len(j.Receipts) != 1 || j.Receipts[0].Consumer != "billing" || time.Since(j.Receipts[0].At).Abs() > time.Minute {
			t.Errorf("the receipts are %+v", j.Receipts)
		}

		h.exec(`INSERT INTO @.deferred (feed, seq, shard, status, blocking, available_at, priority, id, type, schema_version, created_at, occurred_at, payload)
			SELECT f, m.seq, @.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, 8), 'dead', false, 'infinity', 0, m.id, m.type, 1, m.created_at, m.created_at, 'p'
			FROM @.messages m, unnest('{f,inbox/billing}'::text[]) f`)
		h.exec("TRUNCATE @.messages")
		j = h.mustJourney(d, id)
		if j.InLog || j.Message.Type != "t" || string(j.Message.Payload) != "p" || j.Seq == 0 || len(j.Feeds) != 2 || j.Feeds[1].Feed != "inbox/billing" {
			t.Errorf("when the log has dropped it: %+v", j)
		}
		if len(j.Receipts) > 0 {
			t.Errorf("a consumer that has deferred it has handled it: %+v", j.Receipts)
		}

		by := admin.By{Who: "ann"}
		for _, feed := range []string{"f", "inbox/billing"} {
			if n, err := d.Act(t.Context(), by, admin.Discard, admin.Filter{Feed: feed, Type: "t"}, 0); err != nil || n != 1 {
				t.Fatalf("discard: %d, %v", n, err)
			}
		}
		h.exec("TRUNCATE @.inbox")
		j = h.mustJourney(d, id)
		if j.Message.Type != "t" || len(j.Feeds)+len(j.Receipts) > 0 || len(j.Records) != 2 || j.Records[0].N > j.Records[1].N {
			t.Errorf("when it was discarded: %+v", j)
		}
	})
}

// TestJourneyByID finds messages wherever they are, and whatever time their IDs contain.
func TestJourneyByID(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		d := h.db.Admin()
		h.enqueue(10)
		early, random := postrider.NewID(), postrider.ID{1, 2, 3}
		early[0] = 0 // long ago
		h.exec("INSERT INTO @.messages (id, type) VALUES ('" + early.String() + "', 't'), ('" + random.String() + "', 't')")
		h.enqueue(10)
		for _, id := range []postrider.ID{random, early} {
			if j := h.mustJourney(d, id); !j.InLog || !j.Searched.IsZero() {
				t.Errorf("%s: %+v", id, j)
			}
		}
	})
}

// TestTimesOfAllShards searches the place of a time in a few shards, with messages of others before
// and after.
func TestTimesOfAllShards(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 8})
		h.exec("INSERT INTO @.messages (type, key) SELECT 't', 'k' || i FROM generate_series(1, 100) i")
		h.exec("CREATE TABLE @.picked AS SELECT DISTINCT ON (@.shard_of(key, 8)) @.shard_of(key, 8) AS shard, key FROM @.messages; TRUNCATE @.messages")
		for _, shard := range []string{"1", "0", "1"} {
			h.exec("INSERT INTO @.messages (type, key) SELECT 't', key FROM @.picked WHERE shard = " + shard)
		}
		h.deliverAll("f")
		now := time.Now()
		for name, filter := range map[string]admin.Filter{
			"since": {Since: now.Add(-time.Hour)},
			"until": {Until: now.Add(time.Hour)},
			"both":  {Since: now.Add(-time.Hour), Until: now.Add(time.Hour)},
		} {
			page, err := h.db.Admin().Messages(t.Context(), "f", filter, 0, 10)
			if err != nil || len(page.Items) != 3 {
				t.Errorf("%s: %d messages, want 3; %v", name, len(page.Items), err)
			}
		}
	})
}

func (h *house) mustJourney(d *postgres.Admin, id postrider.ID) *admin.Journey {
	h.t.Helper()
	j, err := d.Journey(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return j
}
