package cli

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/table"
)

// operator is the admin API that commands need, independent of the engine.
type operator interface {
	admin.DeadLetters
	admin.Feeds
	admin.Records
	admin.Log
	admin.Gauges
	admin.Problems
}

// replayer is an operator that supports replays.
type replayer interface {
	operator
	admin.Replays
}

// openAdmin opens the admin API of the database. The pool is nil with the classic engine.
func (a *app) openAdmin(ctx context.Context) (d operator, pool *pgxpool.Pool, end func(), err error) {
	if a.db.isClassic() {
		db, err := a.db.openTable(ctx, poolSize)
		if err != nil {
			return nil, nil, nil, err
		}
		end := func() { _ = db.Close() }
		if err := a.db.checkClassic(ctx, db); err != nil {
			return nil, nil, end, err
		}
		d, err := a.db.classicAdmin(db)
		return d, nil, end, asUsage(err)
	}
	if pool, err = a.db.open(ctx); err != nil {
		return nil, nil, nil, err
	}
	db, err := a.db.log(pool)
	if err != nil {
		return nil, pool, pool.Close, err
	}
	return db.Admin(), pool, pool.Close, nil
}

// log opens the log behind the pool.
func (d *database) log(pool *pgxpool.Pool) (*postgres.DB, error) {
	db, err := postgres.Open(pool, d.store())
	return db, asUsage(err)
}

// asUsage marks an error that only wrong flags can cause.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// checkClassic returns an error if postrider's own tables are missing or outdated.
func (d *database) checkClassic(ctx context.Context, db *sql.DB) error {
	cfg, err := d.classicStore()
	if err != nil {
		return usageError{err}
	}
	opened, err := table.Open(db, cfg)
	if err != nil {
		return usageError{err}
	}
	version, err := opened.Migrator().Version(ctx)
	if newest := table.SchemaVersion(cfg.Dialect); err == nil && version < newest {
		err = d.hintMigrate(fmt.Errorf("%w: the tables have version %d of %d", feeds.ErrSchema, version, newest))
	}
	return err
}

// classicAdmin returns the admin API of a table.
func (d *database) classicAdmin(db *sql.DB) (operator, error) {
	cfg, err := d.classicStore()
	if err != nil {
		return nil, err
	}
	opened, err := table.Open(db, cfg)
	if err != nil {
		return nil, err
	}
	return opened.Admin(), nil
}

// admin opens the admin API of the feed's database.
func (f *servedFeed) admin() (operator, error) {
	if f.db.isClassic() {
		return f.db.classicAdmin(f.pool.table())
	}
	db, err := f.db.log(f.pool.Pool)
	if err != nil {
		return nil, err
	}
	return db.Admin(), nil
}

// onReplays is onAdmin for commands that need replays.
func (a *app) onReplays(f func(ctx context.Context, d replayer, args []string) error) func(*cobra.Command, []string) error {
	return a.onAdmin(func(ctx context.Context, d operator, args []string) error {
		r, ok := d.(replayer)
		if !ok {
			return hintedError{usagef("this needs the log: the classic engine has no replays that run by themselves"),
				"to deliver from a point again: " + a.next("feeds rewind FEED --help")}
		}
		return f(ctx, r, args)
	})
}
