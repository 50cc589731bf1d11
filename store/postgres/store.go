package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/feeds"
)

// feedStore implements the relay's side of the log. It is safe for concurrent use.
type feedStore struct {
	pool    committed
	cfg     Config
	freezer freezer
}

var (
	_ feeds.Store      = (*feedStore)(nil)
	_ feeds.Maintainer = (*feedStore)(nil)
	_ feeds.Canary     = (*feedStore)(nil)
)

// statementTimeout bounds every statement of the store, so that a silently dead connection cannot
// hang a relay.
const statementTimeout = 15 * time.Second

// Open implements [feeds.Store].
func (s *feedStore) Open(ctx context.Context, name string, member feeds.Member) (feeds.Feed, error) {
	if name == "" || member.Lease < 10*time.Millisecond {
		return nil, fmt.Errorf("postgres: feed name %q, lease %s: want a name and a lease of at least 10 ms", name, member.Lease)
	}
	if err := checkVersion(ctx, s.pool.Pool, s.cfg); err != nil {
		return nil, err
	}
	var floor, low *int64
	if member.From.Now {
		var err error
		if floor, low, err = findFloor(ctx, s.pool.Pool, s.cfg); err != nil {
			return nil, fmt.Errorf("postgres: open feed %q: %w", name, explain(err))
		}
	}
	var answer []byte
	err := s.pool.QueryRow(ctx, s.cfg.in("SELECT @schema@.open_feed($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"), pgx.QueryExecModeExec, name,
		member.Name, member.Create, member.From.Now, nullTime(member.From.Time), member.Destination, member.Force, member.Beside, floor, low).Scan(&answer)
	if s.pool.refused(err) {
		return s.Open(ctx, name, member)
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: open feed %q: %w", name, explain(err))
	}
	if answer != nil {
		return nil, refusal(name, member.Destination, answer)
	}
	return newFeed(s.pool, s.cfg, name, member), nil
}

// refusal returns the error that says why a feed cannot be opened.
func refusal(name, destination string, answer []byte) error {
	var why struct {
		Feeds       []string
		Destination string
	}
	if err := json.Unmarshal(answer, &why); err != nil {
		return fmt.Errorf("postgres: open feed %q: %w", name, err)
	}
	if why.Feeds != nil {
		return &feeds.NoFeedError{Feed: name, Feeds: why.Feeds}
	}
	return &feeds.DestinationError{Feed: name, Has: why.Destination, Wants: destination}
}

// Canary implements [feeds.Canary].
func (s *feedStore) Canary(ctx context.Context, within time.Duration) error {
	if err := s.inTurn(ctx, nil, "SELECT @schema@.canary($1)", leaseText(within)); err != nil {
		return fmt.Errorf("postgres: canary: %w", explain(err))
	}
	return nil
}
