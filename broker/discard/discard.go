// Package discard is the publisher that confirms everything and keeps nothing: to measure a relay without a broker, and
// to drain a feed that nobody needs.
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

// Publisher counts the messages that it is given. It is safe for concurrent use.
type Publisher struct{ count atomic.Int64 }

// New returns a publisher with a count of zero.
func New() *Publisher { return new(Publisher) }

// Publish implements [postrider.Publisher]: it confirms all messages, also when ctx has ended.
func (p *Publisher) Publish(_ context.Context, msgs []postrider.Message) []error {
	p.count.Add(int64(len(msgs)))
	return nil
}

// Count returns the number of messages confirmed so far, repeated ones included.
func (p *Publisher) Count() int64 { return p.count.Load() }

// KeepsOrder is true: no message fails.
func (p *Publisher) KeepsOrder() bool { return true }

// Close does nothing.
func (p *Publisher) Close() error { return nil }
