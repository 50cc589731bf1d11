package states_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// system is a store under test.
type system struct {
	store feeds.Store
	admin interface {
		admin.DeadLetters
		admin.Feeds
		admin.Records
	}
	offer func(ctx context.Context, msgs []postrider.Message) (repeats []int, err error)
}

func inMemory(*testing.T) system {
	s := memory.Open(memory.Config{Shards: 1})
	return system{s, s, func(ctx context.Context, msgs []postrider.Message) ([]int, error) {
		tx := s.Begin()
		repeats, err := s.Offer(ctx, tx, msgs...)
		return repeats, errors.Join(err, tx.Commit())
	}}
}

func inPostgres(t *testing.T, dsn string) system {
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 1})
	db, err := postgres.Open(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	outbox := db.Outbox()
	return system{db.Feeds(), db.Admin(), func(ctx context.Context, msgs []postrider.Message) (repeats []int, err error) {
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			repeats, err = outbox.Offer(ctx, tx, msgs...)
			return err
		})
		return repeats, err
	}}
}

// scene is a store, its relays and its destination.
type scene struct {
	system
	t       *testing.T
	ids     map[string]postrider.ID // by name
	configs []relay.Config          // of the running relays
	relays  []*relay.Relay
	stops   []func()

	mu      sync.Mutex
	moods   map[string]error       // by name: the destination's error for a message
	down    bool                   // the destination fails for all
	arrived map[string][]string    // by feed
	tried   map[string][]time.Time // by name
}

func newScene(t *testing.T, sys system) *scene {
	s := &scene{
		system:  sys,
		t:       t,
		ids:     make(map[string]postrider.ID),
		moods:   make(map[string]error),
		arrived: make(map[string][]string),
		tried:   make(map[string][]time.Time),
	}
	t.Cleanup(s.stop)
	return s
}

func (s *scene) start(cfg relay.Config) {
	s.t.Helper()
	r, err := relay.New(s.store, destination{s, cfg.Feed}, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	s.configs, s.relays = append(s.configs, cfg), append(s.relays, r)
	s.stops = append(s.stops, func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("Run: %v", err)
		}
	})
}

// stop stops all relays.
func (s *scene) stop() {
	for _, stop := range s.stops {
		stop()
	}
	s.configs, s.relays, s.stops = nil, nil, nil
}

// quick returns the settings of a relay with short delays.
func quick() relay.Config {
	return relay.Config{
		Feed:            "default",
		BalanceInterval: 50 * time.Millisecond,
		PollMax:         20 * time.Millisecond,
		Outage:          retry.Policy{First: 10 * time.Millisecond, Most: 50 * time.Millisecond},
		Retry:           retry.Policy{First: time.Minute},
		Logger:          slog.New(slog.DiscardHandler),
	}
}

// destination is the publisher of a feed's relays. It does not keep order.
type destination struct {
	*scene
	feed string
}

func (d destination) Close() error { return nil }

func (d destination) Publish(_ context.Context, msgs []postrider.Message) []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	errs := make([]error, len(msgs))
	for i := range msgs {
		name := string(msgs[i].Payload)
		d.tried[name] = append(d.tried[name], time.Now())
		switch {
		case d.down:
			errs[i] = postrider.Unavailable(errors.New("the destination is down"))
		case d.moods[name] != nil:
			errs[i] = d.moods[name]
		default:
			if early := time.Until(msgs[i].DeliverAfter); early > 0 {
				d.t.Errorf("%s has arrived %v too early", name, early)
			}
			if name != traffic {
				d.arrived[d.feed] = append(d.arrived[d.feed], name)
			}
		}
	}
	return errs
}

// arrivals returns what has arrived, and the same sorted by key.
func (s *scene) arrivals(feed string) (all, byKey []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = slices.Clone(s.arrived[feed])
	return all, sortByKey(all)
}

// sortByKey sorts names by key, and keeps the order within a key.
func sortByKey(names []string) []string {
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return int(a[0]) - int(b[0]) })
	return names
}
