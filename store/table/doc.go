// Package table is the row-state engine: a message is a row with a status, on MySQL, MariaDB or PostgreSQL, in a table of
// its own or in one that an application has already.
//
// A relay holds shards by leases; what it has delivered it marks in the row. Per key, messages go in the order of the table. See
// docs/choosing-an-engine.md for what that costs beside the log of package postgres. An application on MySQL or MariaDB opens package
// mysql, which has consumers as well. Package adopt finds out how a table that is there could be carried.
package table

import "github.com/postrider/postrider/store/table/internal/sqltext"

// Dialect is the SQL that a server speaks.
type Dialect = sqltext.Dialect

// The dialects. MySQL means MariaDB as well.
const (
	MySQL      = sqltext.MySQL
	PostgreSQL = sqltext.PostgreSQL
)
