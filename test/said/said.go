// Package said keeps what a process prints, for tests that read it while the process runs.
package said

import (
	"bytes"
	"sync"
)

// Buffer is what was printed so far. The zero value is empty, and ready to use by several goroutines.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all of it.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
