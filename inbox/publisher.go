package inbox

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// Publisher makes the inbox a relay's destination: a feed is then handled in the relay's own process, with no broker at all, up to
// parallel keys at a time. Run must be under way too, without consumers, for what is deferred.
func (in *Inbox[Tx]) Publisher(parallel int) postrider.Publisher { return publisher[Tx]{in, parallel} }

type publisher[Tx any] struct {
	inbox    *Inbox[Tx]
	parallel int
}

func (p publisher[Tx]) Publish(ctx context.Context, msgs []postrider.Message) []error {
	return broker.Each(ctx, msgs, p.parallel, func(ctx context.Context, m *postrider.Message) error {
		return p.inbox.Receive(ctx, *m)
	})
}

func (p publisher[Tx]) KeepsOrder() bool { return true }

func (p publisher[Tx]) Close() error { return nil }
