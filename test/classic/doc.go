// Package classic proves the guarantees of the classic engine with relay processes that are killed and paused.
package classic
