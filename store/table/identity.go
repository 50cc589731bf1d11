package table

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Identity returns what tells this database from others, in IDs that are made from those of rows: a random text that was written when
// the tables were laid out. See [DerivedID].
func Identity(ctx context.Context, db *sql.DB, cfg Config) (string, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return "", err
	}
	return cfg.identity(ctx, db)
}

func (c *Config) identity(ctx context.Context, q sqltext.Querier) (id string, err error) {
	if err := c.stmt("SELECT id FROM {identity}").Row(ctx, q).Scan(&id); err != nil {
		return "", fmt.Errorf("table: identity of the database: %w", err)
	}
	return id, nil
}
