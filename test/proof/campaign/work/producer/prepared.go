package producer

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sleep"
)

const preparedPrefix = "campaign_"

// prepared writes in a transaction that outlives its session.
func (p *Producer) prepared(ctx context.Context, pool *pgxpool.Pool, keys []want) error {
	name := preparedPrefix + postrider.NewID().String()
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after PREPARE there is nothing to roll back
	if err := p.body(ctx, tx, Together, keys); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "PREPARE TRANSACTION '"+name+"'"); err != nil {
		return err
	}
	if err := tx.Rollback(ctx); err != nil {
		return err
	}
	p.pause(ctx)
	if rand.IntN(10) == 0 {
		if _, err = pool.Exec(ctx, "ROLLBACK PREPARED '"+name+"'"); err == nil {
			err = errRollback
		}
		return err
	}
	_, err = pool.Exec(ctx, "COMMIT PREPARED '"+name+"'")
	return err
}

// settle ends prepared transactions that their process has forgotten, as a transaction manager
// does: until then their keys are locked.
func (p *Producer) settle(ctx context.Context) {
	for sleep.For(ctx, 2*time.Second) {
		if err := p.settleOnce(ctx); err != nil && ctx.Err() == nil {
			p.log.Debug("prepared transactions could not be looked at", "err", err)
		}
	}
}

func (p *Producer) settleOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, txTimeout)
	defer cancel()
	rows, err := p.pools[0].Query(ctx, `SELECT gid FROM pg_prepared_xacts
		WHERE starts_with(gid, $1) AND database = current_database() AND prepared < clock_timestamp() - interval '5 s'`, preparedPrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		end := "COMMIT"
		if rand.IntN(2) == 0 {
			end = "ROLLBACK"
		}
		if _, err := p.pools[0].Exec(ctx, end+" PREPARED '"+name+"'"); err != nil {
			p.log.Debug("a prepared transaction could not be ended", "err", err) // by another process, most likely
		}
	}
	return nil
}

// asJSON encodes the column of headers.
func asJSON(headers map[string]string) string {
	if len(headers) == 0 {
		return "{}"
	}
	text, err := json.Marshal(headers)
	if err != nil {
		panic(err) // a map of strings can always be encoded
	}
	return string(text)
}
