package adopt

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/internal/catalog"
)

// Table is what a database says about a table.
type Table = catalog.Table

// ErrNoTable is returned by [Inspect] for a table that is not there.
var ErrNoTable = catalog.ErrNoTable

// Inspect looks at a table, which may be preceded by its schema and a dot. It reads the catalogue, and some rows for the words of a
// status.
func Inspect(ctx context.Context, db *sql.DB, d table.Dialect, name string) (*Table, error) {
	return catalog.Inspect(ctx, db, d, name)
}
