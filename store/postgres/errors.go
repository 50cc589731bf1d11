package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// SQLSTATEs that the functions of the schema raise.
const (
	stateForeign = "PR001"
	stateReset   = "PR002"
	stateStandby = "PR003"
	stateLost    = "PR004" // the shard has another owner
	stateServed  = "PR005" // relays serve the feed
	stateGone    = "PR006" // the log no longer holds the message
	stateBare    = "PR007" // a dead letter without its content
	stateMoving  = "PR008" // the number of shards cannot be changed now
)

// explain wraps an error of the server in the error that callers look for.
func explain(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case stateForeign:
		return fmt.Errorf("%w: %w", feeds.ErrForeign, err)
	case stateReset:
		return fmt.Errorf("%w: %w", feeds.ErrReset, err)
	case stateStandby, "25006": // read_only_sql_transaction
		return postrider.Unavailable(err)
	case "42P01", "42883", "3F000": // undefined table, function, schema
		return fmt.Errorf("%w: %w", feeds.ErrSchema, err)
	}
	return err
}
