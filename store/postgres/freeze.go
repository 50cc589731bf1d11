package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// freezeTime is for how long one round freezes. What it has done by then stays done, and the next round goes on.
	freezeTime = 20 * time.Second
	// freezePause is how long a slot is left alone that could not be frozen, because an old transaction is open.
	freezePause = time.Hour
	// freezeDelay is how long a vacuum rests each time it has done a little: what autovacuum does by default.
	freezeDelay = "2ms"
)

// freezer knows which slots were frozen in vain, and when. That a slot is frozen the catalogue tells.
type freezer struct {
	mu    sync.Mutex
	tried map[string]time.Time
}

// freeze freezes the oldest slot that is not written any more and not frozen yet, if this user may. A slot is read once for it, gently and soon
// after it was written; otherwise the server would do that when it has to, for all slots, and could not be stopped.
func (s *feedStore) freeze(ctx context.Context) error {
	s.freezer.mu.Lock()
	defer s.freezer.mu.Unlock()
	slot, err := s.unfrozenSlot(ctx)
	if err != nil || slot == "" || time.Since(s.freezer.tried[slot]) < freezePause {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, freezeTime)
	defer cancel()
	err = s.vacuum(limited, slot)
	if limited.Err() != nil {
		return ctx.Err() // the next round goes on
	}
	if err != nil {
		return fmt.Errorf("postgres: freeze %s: %w", slot, explain(err))
	}
	left, err := s.unfrozenSlot(ctx)
	if left == slot {
		s.freezer.tried[slot] = time.Now()
	}
	return err
}

func (s *feedStore) unfrozenSlot(ctx context.Context) (string, error) {
	var slot *string
	if err := s.inTurn(ctx, &slot, "SELECT @schema@.unfrozen_slot()"); err != nil {
		return "", fmt.Errorf("postgres: freeze: %w", explain(err))
	}
	return value(slot), nil
}

// vacuum runs on a connection of its own, for its settings: behind a pooler they would stay for others.
func (s *feedStore) vacuum(ctx context.Context, slot string) error {
	pool := s.pool.Config()
	cfg := pool.ConnConfig
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, cfg); err != nil {
			return err
		}
	}
	cfg.RuntimeParams["vacuum_cost_delay"] = freezeDelay
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if state(err) == "08P01" { // protocol_violation: a pooler that does not know the setting
		delete(cfg.RuntimeParams, "vacuum_cost_delay")
		conn, err = pgx.ConnectConfig(ctx, cfg)
	}
	if err != nil {
		return err
	}
	// Nothing is left behind when time is up: the server stops the vacuum when its client is gone, or at the request to cancel.
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing depends on it
	_, err = conn.Exec(ctx, "VACUUM (FREEZE, SKIP_LOCKED, TRUNCATE false, INDEX_CLEANUP false) "+slot, pgx.QueryExecModeSimpleProtocol)
	return err
}
