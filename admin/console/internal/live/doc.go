// Package live samples databases for the console. It keeps the samples of the last day, and sends
// each new sample to all watchers. The load on a database does not depend on the number of
// watchers.
package live
