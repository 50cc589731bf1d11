// Package classic is the row-state engine: a message is a row with a status, on MySQL, MariaDB or PostgreSQL, in a table of
// its own or in one that an application has already.
//
// A relay holds shards by leases; what it has delivered it marks in the row. Per key, messages go in the order of the table. See
// docs/choosing-an-engine.md for what that costs beside the log of package postgres.
package classic
