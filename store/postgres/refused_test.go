package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// choosy permanently refuses messages of one type.
type choosy struct {
	mu   sync.Mutex
	sent []string // payloads
}

func (c *choosy) Publish(_ context.Context, msgs []postrider.Message) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := make([]error, len(msgs))
	for i := range msgs {
		if msgs[i].Type == "poison" {
			errs[i] = postrider.Permanent(errors.New("nobody wants it"))
		} else {
			c.sent = append(c.sent, string(msgs[i].Payload))
		}
	}
	return errs
}

func (c *choosy) Close() error { return nil }

// TestRefusedByTable verifies that a message which table deferred cannot store becomes a dead
// letter without content. The other messages of its key and shard are sent, the log keeps the
// content, and a replay sends the message once the table accepts it.
func TestRefusedByTable(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 1, Slots: 3})
		h.exec(`CREATE FUNCTION @.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
			  IF NEW.type = 'poison' AND NEW.payload <> '' THEN RAISE EXCEPTION 'no poison here'; END IF;
			  RETURN NEW;
			END $$;
			CREATE TRIGGER refuse BEFORE INSERT ON @.deferred FOR EACH ROW EXECUTE FUNCTION @.refuse();
			SELECT @.enqueue('poison', payload => '{"n": 0}', key => 'k');
			SELECT @.enqueue('fine', payload => json_build_object('n', n), key => 'k') FROM generate_series(1, 20) n;
			SELECT @.enqueue('fine', payload => json_build_object('n', n), key => 'other') FROM generate_series(21, 200) n;`)
		pub := new(choosy)
		r, err := relay.New(h.store, pub, relay.Config{
			Lease: 3 * time.Second, BatchSize: 10, ReadAhead: 40, Outage: retry.Policy{First: 10 * time.Millisecond, Most: 100 * time.Millisecond}, Retry: retry.Policy{Attempts: 1},
			PublishTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		d := h.db.Admin()
		var deadLetter feeds.Deferred
		await(t, "everything but one message is sent, and that is dead", func() bool {
			pub.mu.Lock()
			sent := len(pub.sent)
			pub.mu.Unlock()
			list, err := d.List(ctx, admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, nil, 10)
			if err != nil {
				t.Fatal(err)
			}
			listed, err := d.ListFeeds(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if sent != 200 || len(list) != 1 || listed[0].Pending != 0 || listed[0].Deferred != 0 {
				return false
			}
			deadLetter = list[0]
			if listed[0].Dead != 1 {
				t.Errorf("the feed has %d dead letters, want 1", listed[0].Dead)
			}
			return true
		})
		if !deadLetter.Bare || deadLetter.Type != "poison" || deadLetter.Key != "" || deadLetter.Blocking ||
			!strings.HasPrefix(deadLetter.LastError, "the store could not defer it: ") || !strings.Contains(deadLetter.LastError, "no poison here") {
			t.Errorf("the dead letter is %+v", deadLetter)
		}
		j, err := d.Journey(ctx, deadLetter.ID)
		if err != nil || !j.InLog || !strings.Contains(string(j.Message.Payload), `"n"`) {
			t.Errorf("the journey is %+v, %v, want the content", j, err)
		}
		passed := func() (passed bool) {
			err := h.pool.QueryRow(ctx, h.in("SELECT bool_and(@.slot_passed(s)) FROM generate_series(0, 2) s")).Scan(&passed)
			if err != nil {
				t.Fatal(err)
			}
			return passed
		}
		if passed() {
			t.Error("the slot with the content can be emptied")
		}

		h.exec("DROP TRIGGER refuse ON @.deferred")
		job, err := d.StartReplay(ctx, admin.By{Who: "ann"}, admin.Replay{Filter: admin.Filter{Feed: deadLetter.Feed, ID: deadLetter.ID}})
		if err == nil {
			_, err = d.RunReplay(ctx, job.ID, func(admin.Job) {})
		}
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the replay has failed with the whole message", func() bool {
			list, err := d.List(ctx, admin.Filter{ID: deadLetter.ID}, nil, 1)
			return err == nil && len(list) == 1 && list[0].Status == feeds.StatusDead && !list[0].Bare && len(list[0].Payload) > 0
		})
		if n, err := d.Act(ctx, admin.By{Who: "ann"}, admin.Discard, admin.Filter{ID: deadLetter.ID}, 0); n != 1 || err != nil {
			t.Errorf("discarded %d, %v", n, err)
		}
		await(t, "the slot can be emptied", passed)
	})
}

// TestExcludeIsBounded verifies that exclusions are bounded, because relays read all of them with
// every Balance, and that those of passed messages make room.
func TestExcludeIsBounded(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, still)
		ids := h.enqueue(admin.MaxExcluded + 1)
		f := h.open("f")
		defer f.Close(ctx)
		h.exec("INSERT INTO @.excluded SELECT 'f', seq, @.shard_of(key, aggregate_type, aggregate_id, id, 1), id FROM @.messages ORDER BY seq LIMIT 1000")
		share, err := f.Balance(ctx)
		if err != nil || len(share.Excluded) != admin.MaxExcluded {
			t.Fatalf("%d are excluded, %v, want %d", len(share.Excluded), err, admin.MaxExcluded)
		}
		d := h.db.Admin()
		last := ids[admin.MaxExcluded]
		if err := d.Exclude(ctx, admin.By{Who: "ann"}, admin.Discard, "f", last); !errors.Is(err, admin.ErrTooManyExcluded) {
			t.Errorf("one more: %v, want ErrTooManyExcluded", err)
		}
		h.exec("UPDATE @.excluded SET seq = -seq WHERE id = (SELECT id FROM @.excluded ORDER BY seq LIMIT 1)") // the log does not hold it
		if err := d.Exclude(ctx, admin.By{Who: "ann"}, admin.Discard, "f", last); err != nil {
			t.Errorf("with room: %v", err)
		}
	})
}

// await repeats cond until it holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !cond(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited a minute in vain until %s", what)
		}
	}
}
