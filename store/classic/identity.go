package classic

import (
	"context"
	"database/sql"
	"fmt"
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

func (c *Config) identity(ctx context.Context, q querier) (id string, err error) {
	if err := c.stmt("SELECT id FROM {identity}").row(ctx, q).Scan(&id); err != nil {
		return "", fmt.Errorf("classic: identity of the database: %w", err)
	}
	return id, nil
}
