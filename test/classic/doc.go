// Package classic tests the guarantees of the classic store with relay processes that are killed
// and suspended.
package classic
