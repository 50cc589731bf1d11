package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/internal/stock"
)

const (
	// recallWindow is the shortest window in which a stream must recognise repetitions: longer than
	// anything that a former owner has under way.
	recallWindow = 30 * time.Second

	recallsAtOnce = 8

	mostDeleted = 50_000 // messages of a stream, of which the server lists all

	// A request to a node that dies is never answered: asking again is better than waiting.
	requestTimeout = 3 * time.Second
)

var errNoStream = errors.New("no stream has the subject, or none that the account can see")

// Recall implements [broker.Recaller]. The fence is the stream's own: within its duplicate window it
// drops what a former owner still has under way, as a repetition of what is sent again.
func (p *Publisher) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	return broker.EachName(names, recallsAtOnce, found, func(subject string, found func(id string)) error {
		s, err := p.sessions.Get(ctx)
		if err != nil {
			return postrider.Unavailable(err)
		}
		err = p.recalls.Recall(ctx, subject, since, found, func(ctx context.Context, since time.Time, found func(id string)) error {
			return s.recall(ctx, subject, since, found)
		})
		if err != nil {
			return fmt.Errorf("nats: subject %s: %w", subject, err)
		}
		return nil
	})
}

func (l *link) recall(ctx context.Context, subject string, since time.Time, found func(id string)) error {
	soon, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name, err := l.js.StreamNameBySubject(soon, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		// The subject may come back to the stream that stored the messages.
		return postrider.NameUnavailable(errNoStream)
	}
	if err != nil {
		return err
	}
	stream, err := l.js.Stream(soon, name)
	if err != nil {
		return err
	}
	if err := canRecall(&stream.CachedInfo().Config); err != nil {
		return err
	}
	since = stock.Since(since, stream.CachedInfo().TimeStamp)
	first, err := readIDs(ctx, stream, subject, since, found)
	if err != nil {
		return err
	}
	// Ask afterwards: what is dropped while the messages are read counts.
	later, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := stream.Info(later)
	if err != nil {
		return err
	}
	state := &info.State
	switch {
	case !state.LastTime.After(since):
		return nil
	case state.FirstSeq > 1 && (state.Msgs == 0 || state.FirstTime.After(since)):
		return broker.CannotRecall("stream %s has dropped messages that are younger than %v", name, time.Since(since).Round(time.Second))
	case state.NumDeleted > mostDeleted:
		return broker.CannotRecall("stream %s has deleted %d messages, too many to see when", name, state.NumDeleted)
	case state.NumDeleted > 0:
		if info, err = stream.Info(later, jetstream.WithDeletedDetails(true)); err != nil {
			return err
		}
		// One right before the first that is left may be as young as that.
		if slices.ContainsFunc(info.State.Deleted, func(number uint64) bool { return number+1 >= first }) {
			return broker.CannotRecall("stream %s has deleted messages that may be younger than %v", name, time.Since(since).Round(time.Second))
		}
	}
	return nil
}

// canRecall returns an error for a stream that may have removed messages anywhere, or forgets their
// IDs too early.
func canRecall(c *jetstream.StreamConfig) error {
	switch {
	case c.Retention != jetstream.LimitsPolicy || c.MaxMsgsPerSubject > 0:
		return broker.CannotRecall("stream %s removes messages that were read or replaced", c.Name)
	case c.SubjectTransform != nil:
		return broker.CannotRecall("stream %s stores messages under other subjects than they were sent to", c.Name)
	case c.Duplicates < recallWindow:
		return broker.CannotRecall("stream %s recognises repetitions for %v only, want at least %v: nats stream edit %s --dupe-window 2m",
			c.Name, c.Duplicates, recallWindow, c.Name)
	}
	return nil
}
