package stage

import (
	"context"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase creates a database on a server, unless it exists, and returns its URL.
func CreateDatabase(ctx context.Context, server, name string) (string, error) {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil {
		return "", err
	}
	if !exists {
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
			return "", err
		}
	}
	address, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	address.Path = "/" + name
	return address.String(), nil
}

// DropDatabase drops a database, even if it is in use.
func DropDatabase(ctx context.Context, server, name string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
	return err
}

// Migrate migrates the tables of the service and of the outbox.
func (s *Stage) Migrate(ctx context.Context) error {
	_, err := s.Command(ctx, s.Admissions, "migrate")
	return err
}
