package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

// Log is the log of a store, as delivered by one feed.
type Log interface {
	// Sent returns up to limit messages that the feed has delivered and that were enqueued with
	// since <= time < until, newest first. If before is not 0, it returns only messages before that
	// position. A result of fewer than limit messages is the last page.
	Sent(ctx context.Context, since, until time.Time, before int64, limit int) ([]Sent, error)
	// Resend sends the messages at these positions to the feed again, with their original IDs.
	Resend(ctx context.Context, places []int64, why string) error
}

// Sent is a message of a log.
type Sent struct {
	postrider.Message
	Place int64 // position in the log; later messages have larger ones
}

// Receipts reads what a consumer's inbox has recorded as handled.
type Receipts interface {
	// Missing returns the messages that the consumer has no record of.
	Missing(ctx context.Context, consumer string, ids []postrider.ID) ([]postrider.ID, error)
}

// Holder is implemented by a destination that can report whether it holds messages.
type Holder interface {
	// Holds returns the indexes of messages that the destination should hold and does not. Their
	// Topic and WireID are as published, and all were published after since. It leaves out messages
	// that the destination may have removed by its own retention rules. It sends and changes
	// nothing.
	Holds(ctx context.Context, since time.Time, msgs []postrider.Message) (missing []int, err error)
}

// Unreceived returns a check that compares a log with a consumer's inbox by message ID, and sends
// again what the inbox lacks. The filter selects the messages that the consumer subscribes to; nil
// selects all.
//
// The inbox must remember messages for longer than the job's Window. Otherwise messages that it has
// forgotten would be handled twice.
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

// Unheld returns a check that asks a destination whether it holds everything that a feed has
// delivered to it, and sends again what it lacks. The route function returns a message as it was
// published, with the Topic and WireID of the feed's routes, and false for a message that goes
// elsewhere. A nil route keeps messages as they are, and uses the type of a message without a topic
// as its topic.
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

// page is the number of messages of a log that are checked together, because a query to a
// destination can be expensive.
const page = 1000

// eachPage pages through the messages that a feed has delivered and mends the missing ones.
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
			err = r.Mend(ctx, nil, nil) // renews the claim
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
