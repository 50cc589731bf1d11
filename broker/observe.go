package broker

import (
	"context"
	"time"

	"github.com/postrider/postrider"
)

// ObservePublisher returns a publisher that reports every call to o under the given feed name.
func ObservePublisher(feed string, to postrider.Publisher, o postrider.Observer) postrider.Publisher {
	p := &observedPublisher{to, feed, o}
	if i, ok := to.(Inspector); ok {
		return struct {
			*observedPublisher
			Inspector
		}{p, i}
	}
	return p
}

type observedPublisher struct {
	postrider.Publisher
	feed string
	o    postrider.Observer
}

func (p *observedPublisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	ctx, told := p.o.Publish(ctx, p.feed, msgs)
	errs := p.Publisher.Publish(ctx, msgs)
	told(errs)
	return errs
}

// KeepsOrder returns the result of the observed publisher.
func (p *observedPublisher) KeepsOrder() bool {
	k, ok := p.Publisher.(OrderKeeper)
	return ok && k.KeepsOrder()
}

// NameOf returns the result of the observed publisher.
func (p *observedPublisher) NameOf(m *postrider.Message) string {
	if n, ok := p.Publisher.(Namer); ok {
		return n.NameOf(m)
	}
	return ""
}

// Sends returns the result of the observed publisher.
func (p *observedPublisher) Sends(m *postrider.Message) bool {
	f, ok := p.Publisher.(Filter)
	return !ok || f.Sends(m)
}

// Recall asks the observed publisher. It is not reported: it sends nothing.
func (p *observedPublisher) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	return Recall(ctx, p.Publisher, names, since, found)
}
