// Package examples holds programs to copy from. Each runs against the database that DATABASE_URL names, where it lays out
// the schema "postrider" and a small table of its own.
//
//   - quickstart: an order and its message in one transaction, and nothing else; finds the log laid out
//   - pgx: a business transaction and a message with pgx
//   - databasesql: the same with database/sql
//   - embedded: an application that carries its own messages to a Go function
//   - orders-python, orders-typescript, orders-java: an order service that calls SQL functions, without any library of ours
package examples
