package console_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
)

// picky refuses what is bad.
type picky struct{}

func (picky) Publish(_ context.Context, msgs []postrider.Message) []error {
	errs := make([]error, len(msgs))
	for i := range msgs {
		if strings.HasPrefix(msgs[i].Type, "bad.") {
			errs[i] = postrider.Permanent(errors.New("refused by amqp://ann:geheim@broker/"))
		}
	}
	return errs
}

// NameOf gives each key a name of its own: a name that refuses everything is held, and nothing of it becomes a dead letter.
func (picky) NameOf(m *postrider.Message) string { return m.OrderKey() }

func (picky) Close() error { return nil }

// relay serves the feed "default" until all that was enqueued is delivered, or deferred.
func (s *scene) relay(dead int) {
	s.t.Helper()
	r := must(relay.New(s.store, picky{}, relay.Config{Name: "r1", PollMin: time.Millisecond, SettleInterval: time.Millisecond, Retry: retry.Policy{Attempts: 1},
		Logger: slog.New(slog.DiscardHandler)}))
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	s.await("the relay", func() bool {
		feeds := must(s.db.Feeds.ListFeeds(s.t.Context()))
		return len(feeds) > 0 && feeds[0].Pending == 0 && feeds[0].Dead >= dead
	})
	stop()
	<-ended
}

func (s *scene) await(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s is not done in time: %+v", what, must(s.db.Feeds.ListFeeds(s.t.Context())))
		}
	}
}

// good and bad make messages.
func good(n int) []postrider.Message { return messages("order.placed", n) }
func bad(n int) []postrider.Message  { return messages("bad.order", n) }

func messages(typ string, n int) []postrider.Message {
	all := make([]postrider.Message, n)
	for i := range all {
		all[i] = postrider.Event(typ, postrider.Aggregate{Type: "order", ID: fmt.Sprint(typ, "-", i)}, map[string]any{"n": i, "card": "4111 1111"})
		all[i].Headers = map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "shop": "north"}
	}
	return all
}
