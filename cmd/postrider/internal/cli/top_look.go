package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/cmd/postrider/internal/top"
	"github.com/postrider/postrider/store/feeds"
)

// lookFunc queries a snapshot of the store, with details of one feed if inside names it.
type lookFunc func(ctx context.Context, inside string) (top.Snapshot, error)

const (
	lookTimeout = 10 * time.Second
	topRows     = 50 // per list: more than fits on most screens
)

func (a *app) look(ctx context.Context, pool *pgxpool.Pool, d operator, inside string) (top.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s := top.Snapshot{Inside: inside}
	listed, err := d.ListFeeds(ctx)
	if err != nil {
		return s, err
	}
	if s.At, s.Last, err = a.lookAtEnd(ctx, pool, d); err != nil {
		return s, err
	}
	for _, f := range listed {
		one := top.Feed{Feed: f}
		if f.Deferred > 0 {
			counts, err := d.Count(ctx, admin.Filter{Feed: f.Name, Statuses: []feeds.Status{feeds.StatusRetry}}, 0)
			if err != nil {
				return s, err
			}
			one.Retrying = counts[feeds.StatusRetry]
		}
		if one.Problems, err = d.Problems(ctx, f.Name); err != nil {
			return s, err
		}
		one.Problems = slices.DeleteFunc(one.Problems, func(p feeds.Problem) bool { return !p.Over.IsZero() })
		one.Problems = one.Problems[:min(len(one.Problems), topRows)]
		s.Feeds = append(s.Feeds, one)
	}
	if s.Blocked, err = d.Blocked(ctx, inside, topRows); err != nil || inside == "" {
		return s, err
	}
	s.Dead, err = d.List(ctx, admin.Filter{Feed: inside, Statuses: []feeds.Status{feeds.StatusDead}}, nil, topRows)
	return s, err
}

// lookAtEnd returns the server's time and the number of the newest message. The pool is nil with
// the classic engine.
func (a *app) lookAtEnd(ctx context.Context, pool *pgxpool.Pool, d operator) (at time.Time, last int64, err error) {
	if pool == nil {
		standing, err := d.Gauges(ctx)
		if err != nil {
			return at, 0, err
		}
		return standing.At, standing.Enqueued, nil
	}
	// Operators have no right to read the sequence. The newest message is at the end of an index.
	err = pool.QueryRow(ctx, a.db.in(`SELECT clock_timestamp(), coalesce((SELECT m.seq FROM @schema@.messages m ORDER BY m.seq DESC LIMIT 1), 0)`)).
		Scan(&at, &last)
	if err != nil {
		err = fmt.Errorf("postgres: the end of the log: %w", err)
	}
	return at, last, err
}
