// Package discard is a publisher that confirms every message and discards it, to measure a relay
// without a broker, or to drain a feed that is no longer needed.
package discard

import (
	"context"
	"sync/atomic"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

var (
	_ postrider.Publisher = (*Publisher)(nil)
	_ broker.OrderKeeper  = (*Publisher)(nil)
)

// Publisher counts messages. It is safe for concurrent use.
type Publisher struct{ count atomic.Int64 }

// New returns a publisher with a count of zero.
func New() *Publisher { return new(Publisher) }

// Publish implements [postrider.Publisher]: it confirms all messages, even if ctx has ended.
func (p *Publisher) Publish(_ context.Context, msgs []postrider.Message) []error {
	p.count.Add(int64(len(msgs)))
	return nil
}

// Count returns the number of messages confirmed so far, including duplicates.
func (p *Publisher) Count() int64 { return p.count.Load() }

// KeepsOrder returns true: no message fails.
func (p *Publisher) KeepsOrder() bool { return true }

// Close does nothing.
func (p *Publisher) Close() error { return nil }
