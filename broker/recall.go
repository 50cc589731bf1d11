package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

// Sender identifies who publishes: one shard of one feed, under its current owner. A relay puts it
// into the context of every Publish and Recall.
type Sender struct {
	Name string // the same for all owners of the shard, and unique at the destination
	Term int64  // grows with each owner, and with each recall
}

type senderKey struct{}

// WithSender returns a context that carries s.
func WithSender(ctx context.Context, s Sender) context.Context {
	return context.WithValue(ctx, senderKey{}, s)
}

// SenderOf returns the sender that ctx carries, and whether it carries one.
func SenderOf(ctx context.Context) (Sender, bool) {
	s, ok := ctx.Value(senderKey{}).(Sender)
	return s, ok
}

// ErrFenced means that another process has taken over the sender and recalled its messages: it
// matches the errors of Publish and Recall under a lower term. The message was not stored.
var ErrFenced = errors.New("another process has taken over this shard")

// ErrCannotRecall means that a destination cannot report what it stores. Asking again does not
// help. The error itself means that it never can; see [CannotRecall] for a reason that somebody can
// remove.
var ErrCannotRecall = errors.New("the destination cannot report which messages it stores")

// CannotRecall returns an error that matches [ErrCannotRecall] and states why.
func CannotRecall(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCannotRecall, fmt.Errorf(format, args...))
}

// Recaller is implemented by a [postrider.Publisher] whose destination can report what has arrived
// after the sender's last process ended without knowing. Without it, those messages are sent again.
type Recaller interface {
	// Recall fences each name, and then reports what it holds, for the sender and term of ctx.
	// Names are those of [Namer]. It returns an error for each name, or nil. If the error of a name
	// is nil:
	//
	//   - No message that Publish was given for this sender under a lower term is stored under the
	//     name after Recall has returned, whether it is still in a buffer, in the network, or in a
	//     paused process. Publish fails for it with [ErrFenced]; or it drops the message as a
	//     repetition of one that has been published since.
	//   - found was called at least once with the ID, as in [postrider.Message.BrokerID], of each
	//     message that this sender has stored under the name since the given time. It may also be
	//     called for earlier messages and for those of other senders, but not for an event of
	//     another source, whose ID may be the same: the caller would take its own message for
	//     stored. What counts is how long ago the time was: the clocks of the caller and the
	//     destination may differ. Calls of found do not overlap.
	//
	// An error that matches [ErrFenced] means that a higher term has recalled, and
	// [ErrCannotRecall] that the destination cannot answer, for example because it has deleted
	// messages since the given time. After any other error the caller asks again, for a minute if
	// the destination works otherwise. A name that does not exist at the moment is such an error: when
	// it exists again, it may still have what it stored before.
	Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error
}

// Recall asks p, if it is a [Recaller]. Otherwise every name fails with [ErrCannotRecall].
func Recall(ctx context.Context, p postrider.Publisher, names []string, since time.Time, found func(id string)) []error {
	if r, ok := p.(Recaller); ok {
		return r.Recall(ctx, names, since, found)
	}
	return slices.Repeat([]error{ErrCannotRecall}, len(names))
}

// EachName calls recall for each name, at most limit at a time, and returns an error for each, or
// nil. It makes calls of found not overlap.
func EachName(names []string, limit int, found func(id string), recall func(name string, found func(id string)) error) []error {
	var mu sync.Mutex
	locked := func(id string) {
		mu.Lock()
		defer mu.Unlock()
		found(id)
	}
	errs := make([]error, len(names))
	slots := make(chan struct{}, limit)
	var run sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		run.Go(func() {
			defer func() { <-slots }()
			errs[i] = recall(name, locked)
		})
	}
	run.Wait()
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}
