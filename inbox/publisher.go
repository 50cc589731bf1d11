package inbox

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// Publisher makes the inbox a relay's destination: the relay handles the feed in its own process,
// without a broker, up to parallel keys at a time. [Inbox.Run] must run too, without consumers, to
// retry deferred messages.
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
