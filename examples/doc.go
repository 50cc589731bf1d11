// Package examples holds programs to copy from. Each uses the database at DATABASE_URL, and creates
// the schema "postrider" and a small table of its own there.
//
//   - quickstart: an order and its message in one transaction, and nothing else; needs an existing
//     schema
//   - pgx: a business transaction and a message with pgx
//   - databasesql: the same with database/sql
//   - embedded: an application that runs its own relay, with a Go function as the destination
//   - orders-python, orders-typescript, orders-java: an order service that calls SQL functions,
//     without any library of ours
package examples
