package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// freezeTime bounds one round of freezing. The next round continues where it stopped.
	freezeTime = 20 * time.Second
	// freezePause is how long freeze skips a slot that it could not freeze because an old
	// transaction was open.
	freezePause = time.Hour
	// freezeDelay is the vacuum_cost_delay of our vacuums: the default of autovacuum.
	freezeDelay = "2ms"
)

// freezer remembers which slots could not be frozen, and when it tried. The catalogue tells which
// slots are frozen.
type freezer struct {
	mu    sync.Mutex
	tried map[string]time.Time
}

// freeze freezes the oldest slot that is no longer written and not frozen yet, if this user may. It
// reads each slot once, slowly and soon after the last write. Otherwise the server would run an
// anti-wraparound vacuum on all slots at once, which cannot be stopped.
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
		return ctx.Err() // the next round continues
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

// vacuum uses a connection of its own, because behind a pooler its settings would stay for other
// users of the session.
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
	if state(err) == "08P01" { // protocol_violation: the pooler does not know the setting
		delete(cfg.RuntimeParams, "vacuum_cost_delay")
		conn, err = pgx.ConnectConfig(ctx, cfg)
	}
	if err != nil {
		return err
	}
	// Nothing keeps running after the time limit: the server stops the vacuum when its client
	// disconnects or cancels it.
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing depends on it
	_, err = conn.Exec(ctx, "VACUUM (FREEZE, SKIP_LOCKED, TRUNCATE false, INDEX_CLEANUP false) "+slot, pgx.QueryExecModeSimpleProtocol)
	return err
}
