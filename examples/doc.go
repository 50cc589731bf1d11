// Package examples holds programs to copy from. Each runs against the database that DATABASE_URL names, where it lays out
// the schema "postrider" and a small table of its own.
//
//   - pgx: a business transaction and a message with pgx
//   - databasesql: the same with database/sql
//   - embedded: an application that carries its own messages to a Go function
package examples
