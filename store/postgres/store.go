package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
)

// Store is the relay's side of the log. It is safe for concurrent use.
type Store struct {
	pool    committed
	cfg     Config
	freezer freezer
}

var (
	_ postrider.Store      = (*Store)(nil)
	_ postrider.Maintainer = (*Store)(nil)
	_ postrider.Canary     = (*Store)(nil)
)

// statementTimeout bounds every statement of the store: a connection that died without a word must not hang a relay.
const statementTimeout = 15 * time.Second

// New returns a store that connects through pool, to a primary server. A relay keeps at most four connections busy.
// Nothing is asked of the database until the store is used.
func New(pool *pgxpool.Pool, cfg Config) (*Store, error) {
	if pool == nil {
		return nil, errors.New("postgres: pool is nil")
	}
	cfg, err := cfg.withDefaults()
	return &Store{pool: newCommitted(pool), cfg: cfg, freezer: freezer{tried: map[string]time.Time{}}}, err
}

// Open implements [postrider.Store].
func (s *Store) Open(ctx context.Context, name string, member postrider.Member) (postrider.Feed, error) {
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

// refusal is why a feed cannot be opened.
func refusal(name, destination string, answer []byte) error {
	var why struct {
		Feeds       []string
		Destination string
	}
	if err := json.Unmarshal(answer, &why); err != nil {
		return fmt.Errorf("postgres: open feed %q: %w", name, err)
	}
	if why.Feeds != nil {
		return &postrider.NoFeedError{Feed: name, Feeds: why.Feeds}
	}
	return &postrider.DestinationError{Feed: name, Has: why.Destination, Wants: destination}
}

// Canary implements [postrider.Canary].
func (s *Store) Canary(ctx context.Context, within time.Duration) error {
	if err := s.inTurn(ctx, nil, "SELECT @schema@.canary($1)", leaseText(within)); err != nil {
		return fmt.Errorf("postgres: canary: %w", explain(err))
	}
	return nil
}

// Rebased is what [Store.Rebase] kept for a feed.
type Rebased struct {
	Feed      string `json:"feed"`
	Unsettled int64  `json:"unsettled"`
}

// Rebase makes this database the home of the ledger, after a restore or a clone: it keeps what the ledger had not
// settled for at least one feed, forgets all other messages, and starts every cursor anew. Producers wait while it runs.
func (s *Store) Rebase(ctx context.Context) ([]Rebased, error) {
	var kept []Rebased
	err := pgx.BeginTxFunc(ctx, s.pool, readCommitted, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.cfg.in("SELECT feed, unsettled FROM @schema@.rebase()"), pgx.QueryExecModeExec)
		if err != nil {
			return err
		}
		kept, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Rebased])
		return err
	})
	if err == nil {
		return kept, nil
	}
	return nil, fmt.Errorf("postgres: rebase: %w", explain(err))
}
