package cli

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
)

// store opens the feed's store on the open connections.
func (f *servedFeed) store() (feeds.Store, error) {
	if !f.db.isClassic() {
		db, err := f.db.log(f.pool.Pool)
		if err != nil {
			return nil, err
		}
		return db.Feeds(), nil
	}
	cfg, err := f.db.classicStore()
	if err != nil {
		return nil, err
	}
	cfg.Only = f.only
	if f.isAdopted() {
		f.cfg.Canary = 0 // do not write messages of our own into the application's table
	}
	opened, err := table.Open(f.pool.table(), cfg)
	if err != nil {
		return nil, err
	}
	return opened.Feeds(), nil
}

// isAdopted reports whether the feed's table belongs to the application.
func (f *servedFeed) isAdopted() bool { return f.db.table.Name != "" || f.db.table.Preset != "" }

// table returns the connections as a [sql.DB] for the classic engine.
func (p *servedPool) table() *sql.DB {
	if p.sql == nil {
		db := stdlib.OpenDBFromPool(p.Pool)
		db.SetMaxIdleConns(0) // pgxpool keeps idle connections
		return db
	}
	return p.sql
}

// listen queries databases periodically where the driver cannot report its answers.
func (s *service) listen(ctx context.Context, helpers *sync.WaitGroup) {
	known := make(map[*servedPool]bool)
	for i := range s.feeds {
		pool := s.feeds[i].pool
		if pool.sql == nil || known[pool] {
			continue
		}
		known[pool] = true
		helpers.Go(func() {
			ticker := time.NewTicker(checkInterval)
			defer ticker.Stop()
			for {
				asking, cancel := context.WithTimeout(ctx, connectTimeout)
				_, err := pool.sql.ExecContext(asking, "DO 0")
				cancel()
				pool.answers.note(err)
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
}
