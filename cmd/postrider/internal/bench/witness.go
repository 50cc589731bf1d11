package bench

import (
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/discard"
)

// witness records the confirmations of a publisher in the book.
type witness struct {
	postrider.Publisher
	book *book
}

// Publish implements [postrider.Publisher].
func (w witness) Publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := w.Publisher.Publish(ctx, msgs)
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		w.book.confirm(msgs)
		return errs
	}
	for i, err := range errs {
		if err == nil {
			w.book.confirm(msgs[i : i+1])
		}
	}
	return errs
}

// KeepsOrder implements [broker.OrderKeeper].
func (w witness) KeepsOrder() bool {
	keeper, ok := w.Publisher.(broker.OrderKeeper)
	return ok && keeper.KeepsOrder()
}

// NameOf implements [broker.Namer].
func (w witness) NameOf(m *postrider.Message) string {
	if n, ok := w.Publisher.(broker.Namer); ok {
		return n.NameOf(m)
	}
	return ""
}

// Recall implements [broker.Recaller].
func (w witness) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	return broker.Recall(ctx, w.Publisher, names, since, found)
}

// discarding returns a publisher that records everything as confirmed and sends it nowhere.
func discarding(b *book) postrider.Publisher { return witness{discard.New(), b} }
