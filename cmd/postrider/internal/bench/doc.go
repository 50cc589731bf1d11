// Package bench measures what Postrider costs and how fast it is, on any PostgreSQL server, in a schema of its own.
//
// Each scenario is one function that works in a [Lab] and returns the figures that "postrider bench" prints. Producers
// and relay run in this process, each with connections of their own; the relay is not told of commits, as if it were
// another process.
package bench
