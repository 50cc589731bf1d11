package mysql

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/table/internal/deadletters"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// shortly is how soon a transaction is begun again that the server has given up for the sake of others.
var shortly = retry.Policy{First: time.Millisecond, Most: 20 * time.Millisecond}

// yielded reports that the server has given a transaction up, as a whole, for the sake of others. A lock that was waited for in vain
// is not among these: its holder will most likely still have it.
func yielded(err error) bool {
	number, _ := sqltext.Code(err)
	return number == 1213 || number == 1020 // a deadlock; a row has changed since it was read
}

// errEnded means that a transaction is not the one any more that was begun. MySQL ends it after a deadlock, and before it defines a
// table; what is executed then commits by itself.
var errEnded = errors.New("mysql: the transaction has ended before its time: a deadlock was not reported, or a table was defined in it")

// isNoSavepoint reports that a transaction has lost its savepoint, and so is not the one that was begun.
func isNoSavepoint(err error) bool {
	number, _ := sqltext.Code(err)
	return number == 1305
}

// byIndex makes a statement find rows by an index, and so lock no others. Of a small table the server would rather read all, lock what
// it reads, and wait for what others have locked.
func (c *Config) byIndex(name string) string {
	return " FORCE INDEX (" + sqltext.MySQL.Quote(c.Prefix+name) + ")"
}

// numbered are numbers as a table, o, and the next table is gone to with each of them: see byIndex. DISTINCT makes a table of its own of
// them: MySQL refuses to lock JSON_TABLE's.
func numbered(numbers []int64) string {
	return "(SELECT DISTINCT n FROM JSON_TABLE('[" + deadletters.Joined(numbers) + "]', '$[*]' COLUMNS (n bigint PATH '$')) j) o STRAIGHT_JOIN"
}

// deleteNumbered removes rows that this transaction has locked.
func (c *Config) deleteNumbered(ctx context.Context, tx *sql.Tx, table, column string, numbers []int64) error {
	_, err := c.stmt("DELETE t FROM ", numbered(numbers), " ", table, " t ON t.", column, " = o.n").Exec(ctx, tx)
	return err
}
