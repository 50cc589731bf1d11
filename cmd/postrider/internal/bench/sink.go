package bench

import (
	"context"

	"github.com/postrider/postrider"
)

// sink discards messages, and enters in the book when it did.
type sink struct{ book *book }

var (
	_ postrider.Publisher   = sink{}
	_ postrider.OrderKeeper = sink{}
)

// Publish implements [postrider.Publisher].
func (s sink) Publish(_ context.Context, msgs []postrider.Message) []error {
	s.book.confirm(msgs)
	return nil
}

// KeepsOrder is true: nothing ever fails.
func (s sink) KeepsOrder() bool { return true }

// Close does nothing.
func (s sink) Close() error { return nil }
