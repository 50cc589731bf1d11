// Package doubt keeps track of the messages of a shard that may have arrived without our
// knowledge: those that former owners have sent, and those of our own calls without an answer. It decides what
// the destination must be asked before anything is sent again. It has no goroutines, clock, locks or
// I/O.
//
// Read the files in this order:
//
//   - book.go: all of it
package doubt
