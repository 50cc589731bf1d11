package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, runSuite)
}

func TestStoreThroughPooler(t *testing.T) {
	t.Parallel()
	pgtest.EachPooled(t, runSuite)
}

func runSuite(t *testing.T, dsn string) {
	const shards = 4
	pool := pgtest.Pool(t, dsn)
	schemas := &lender{suite: t, pool: pool, layout: postgres.Layout{Shards: shards}}
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		db := must(postgres.Open(pool, schemas.lend(t)))(t)
		outbox := db.Outbox()
		return storetest.Harness{
			Store:  db.Feeds(),
			Shards: shards,
			Begin:  func(t *testing.T) storetest.Tx { return &tx{must(pool.Begin(t.Context()))(t), outbox, t} },
			Admin:  db.Admin(),
		}
	})
}

// lender lends schemas to the tests of a suite, one after another: creating one takes longer than
// most of these tests.
type lender struct {
	suite  *testing.T
	pool   *pgxpool.Pool
	layout postgres.Layout
	mu     sync.Mutex
	free   []postgres.Config
}

// lend returns a schema that is as good as new, until the test ends.
func (l *lender) lend(t *testing.T) (cfg postgres.Config) {
	t.Helper()
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		cfg, l.free = l.free[n-1], l.free[:n-1]
	}
	l.mu.Unlock()
	if cfg.Schema == "" {
		cfg = pgtest.Schema(l.suite, l.pool, l.layout)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // keep the evidence
		}
		if _, err := l.pool.Exec(context.Background(), strings.ReplaceAll(emptySchema, "@schema@", cfg.Schema), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("empty schema %s: %v", cfg.Schema, err)
			return
		}
		l.mu.Lock()
		l.free = append(l.free, cfg)
		l.mu.Unlock()
	})
	return cfg
}

// emptySchema deletes everything that is not part of the layout. TRUNCATE and ALTER SEQUENCE would
// make all sessions plan all statements again.
const emptySchema = `DO $$
DECLARE
  r regclass;
BEGIN
  SET LOCAL session_replication_role = replica;  -- or the record would not let itself be emptied
  SET LOCAL lock_timeout = '10s';
  FOR r IN SELECT oid FROM pg_class WHERE relnamespace = '@schema@'::regnamespace AND relkind = 'r'
           AND relname NOT IN ('migrations', 'identity', 'generation') ORDER BY relname
  LOOP
    EXECUTE format('DELETE FROM %s', r);
  END LOOP;
  FOR r IN SELECT oid FROM pg_class WHERE relnamespace = '@schema@'::regnamespace AND relkind = 'S' LOOP
    PERFORM setval(r, 1, false);
  END LOOP;
END
$$`

// tx joins an outbox and a transaction for the suite.
type tx struct {
	pgx.Tx
	outbox *postgres.Outbox
	t      *testing.T
}

func (x *tx) Enqueue(ctx context.Context, msgs ...postrider.Message) error {
	return x.outbox.Enqueue(ctx, x.Tx, msgs...)
}

func (x *tx) Offer(ctx context.Context, msgs ...postrider.Message) ([]int, error) {
	return x.outbox.Offer(ctx, x.Tx, msgs...)
}

func (x *tx) Commit() error { return x.Tx.Commit(x.t.Context()) }

func (x *tx) Rollback() error { return x.Tx.Rollback(x.t.Context()) }
