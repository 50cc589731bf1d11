// Package bench measures the cost and the speed of Postrider on any PostgreSQL server, in a schema
// of its own.
//
// Each scenario is a function that works in a [Lab] and returns the figures that "postrider bench"
// prints. Producers and relay run in this process with separate connections. The relay is not
// notified of commits, as if it ran in another process.
package bench
