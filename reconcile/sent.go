package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

// Log is the log of a store, as one feed has delivered it.
type Log interface {
	// Sent returns up to limit messages that the feed has delivered and that were enqueued with since <= time < until, newest
	// first; those before a place, if that is not 0. Fewer than limit are the last ones.
	Sent(ctx context.Context, since, until time.Time, before int64, limit int) ([]Sent, error)
	// Resend has the messages at these places sent to the feed once more, with the IDs that they have.
	Resend(ctx context.Context, places []int64, why string) error
}

// Sent is a message of a log.
type Sent struct {
	postrider.Message
	Place int64 // in the log; later messages have larger ones
}

// Receipts is where a consumer's inbox records what it has handled.
type Receipts interface {
	// Missing returns those of the messages that the consumer has no record of.
	Missing(ctx context.Context, consumer string, ids []postrider.ID) ([]postrider.ID, error)
}

// Holder is implemented by a destination that can tell whether it holds messages.
type Holder interface {
	// Holds returns the indexes of messages that the destination ought to hold and does not. Their Topic and WireID are as they
	// were published, and all were published after since. What the destination may have dropped by its own rules, as it was too old,
	// is not among them. It sends and changes nothing.
	Holds(ctx context.Context, since time.Time, msgs []postrider.Message) (missing []int, err error)
}

// Unreceived returns a check that compares a log with a consumer's inbox by message ID, and sends again what the inbox lacks.
// The filter chooses the messages that the consumer subscribes to; nil means all.
//
// The inbox must remember longer than the job's Window, or what it has forgotten would be handled twice.
func Unreceived(log Log, inbox Receipts, consumer string, filter func(postrider.Message) bool) Check {
	return func(ctx context.Context, r *Round) error {
		return eachPage(ctx, log, r, filter, "not received by "+consumer, func(ctx context.Context, msgs []postrider.Message) ([]int, error) {
			ids := make([]postrider.ID, len(msgs))
			for i := range msgs {
				ids[i] = msgs[i].ID
			}
			missing, err := inbox.Missing(ctx, consumer, ids)
			if err != nil {
				return nil, err
			}
			var places []int
			for i, id := range ids {
				if slices.Contains(missing, id) {
					places = append(places, i)
				}
			}
			return places, nil
		})
	}
}

// Unheld returns a check that asks a destination whether it holds everything that a feed has delivered to it, and sends again
// what it lacks. The route returns a message as it was published, with the Topic and WireID of the feed's routes, and false for one that
// goes elsewhere; nil means as it is, with its type for a topic if it has none.
func Unheld(log Log, at Holder, route func(postrider.Message) (postrider.Message, bool)) Check {
	if route == nil {
		route = func(m postrider.Message) (postrider.Message, bool) {
			fill(&m.Topic, m.Type)
			return m, true
		}
	}
	return func(ctx context.Context, r *Round) error {
		return eachPage(ctx, log, r, func(m postrider.Message) bool { _, goes := route(m); return goes }, "not held by the broker",
			func(ctx context.Context, msgs []postrider.Message) ([]int, error) {
				routed := make([]postrider.Message, len(msgs))
				for i := range msgs {
					routed[i], _ = route(msgs[i])
				}
				return at.Holds(ctx, r.Since, routed)
			})
	}
}

// page is how many messages of a log are looked at together, as asking a destination can be costly.
const page = 1000

// eachPage walks through what a feed has sent and mends what is missing.
func eachPage(ctx context.Context, log Log, r *Round, filter func(postrider.Message) bool, why string,
	missing func(context.Context, []postrider.Message) ([]int, error),
) error {
	places := make(map[postrider.ID]int64)
	resend := func(ctx context.Context, msgs []postrider.Message) error {
		at := make([]int64, len(msgs))
		for i := range msgs {
			at[i] = places[msgs[i].ID]
		}
		slices.Sort(at)
		return log.Resend(ctx, at, why)
	}
	size := max(r.Batch, page)
	for before := int64(0); ; {
		sent, err := log.Sent(ctx, r.Since, r.Until, before, size)
		if err != nil {
			return err
		}
		clear(places)
		var msgs, lost []postrider.Message
		for _, m := range sent {
			if filter == nil || filter(m.Message) {
				msgs = append(msgs, m.Message)
				places[m.ID] = m.Place
			}
		}
		if len(msgs) > 0 {
			within, cancel := context.WithTimeout(ctx, r.Timeout)
			missed, err := missing(within, msgs)
			cancel()
			if err != nil {
				return err
			}
			for _, at := range missed {
				lost = append(lost, msgs[at])
			}
		}
		if len(lost) == 0 {
			err = r.Mend(ctx, nil, nil) // keeps the claim
		}
		for part := range slices.Chunk(lost, r.Batch) {
			if err = r.Mend(ctx, part, resend); err != nil {
				break
			}
		}
		if err != nil || len(sent) < size {
			return err
		}
		before = sent[len(sent)-1].Place
	}
}
