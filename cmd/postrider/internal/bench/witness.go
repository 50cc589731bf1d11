package bench

import (
	"context"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/discard"
)

// witness enters in the book what a publisher confirms.
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

// KeepsOrder is what the publisher says.
func (w witness) KeepsOrder() bool {
	keeper, ok := w.Publisher.(broker.OrderKeeper)
	return ok && keeper.KeepsOrder()
}

// NameOf is what the publisher says.
func (w witness) NameOf(m *postrider.Message) string {
	if n, ok := w.Publisher.(broker.Namer); ok {
		return n.NameOf(m)
	}
	return ""
}

// discarding confirms everything to the book and sends it nowhere.
func discarding(b *book) postrider.Publisher { return witness{discard.New(), b} }
