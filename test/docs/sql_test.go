package docs

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/docs/scratch"
)

// database is the transaction that runs all SQL of the pages, one block after the other. Each block
// is rolled back, and finally the transaction, because roles belong to the whole server.
var database struct {
	sync.Mutex
	pgx.Tx
}

// openDatabase begins the transaction, in a database with Postrider's tables and roles.
func openDatabase(t *testing.T) {
	t.Helper()
	script, err := postgres.NewScript(postgres.Config{}, postgres.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	if database.Tx, err = scratch.Pool(t).Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { database.Rollback(context.Background()) })
	if _, err := database.Exec(t.Context(), script.Roles(), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

var (
	ends   = regexp.MustCompile(`(?im)^(BEGIN|COMMIT|ROLLBACK);.*\n`)
	parts  = regexp.MustCompile(`;[ \t]*(--[^\n]*)?\n`)
	places = regexp.MustCompile(`\$\d`)
)

// query returns an error if the database rejects a statement of a block.
func query(t *testing.T, b block) error {
	t.Helper()
	ctx := t.Context()
	database.Lock()
	defer database.Unlock()
	tx, err := database.Begin(ctx) // a savepoint
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, b.setup, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	text := ends.ReplaceAllString(b.text, "")
	statements := []string{text}
	if !strings.Contains(text, "$$") {
		statements = parts.Split(text, -1)
	}
	for _, statement := range statements {
		if places.MatchString(statement) && !strings.Contains(statement, "$$") {
			_, err = tx.Prepare(ctx, "", statement) // the reader provides the values
		} else {
			_, err = tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, statement)
		}
	}
	return nil
}
