package adopt_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestDescribed tests each table with producers as described, three relays and RabbitMQ. It then
// checks the outcome in the table.
func TestDescribed(t *testing.T) {
	each(t, all, func(t *testing.T, d described, server tabletest.Server) {
		s := newScene(t, d, server)
		for range 3 {
			s.start(s.queue.publisher(), relay.Config{BalanceInterval: 50 * time.Millisecond})
		}
		committed := s.produce(8, 25)
		until(t, "every row says that it was published", func() bool { return s.count(d.published) == committed })
		came := s.queue.take()
		if n := inOrder(t, came); n != committed || len(came) != committed {
			t.Errorf("%d messages, %d different ones, have arrived of %d that were committed", len(came), n, committed)
		}
		wire := make(map[string]bool)
		for id := range s.rowIDs() {
			wire[d.wire(identity(t, server), id)] = true
		}
		for _, a := range came {
			if !wire[a.id] {
				t.Fatalf("a message has the ID %s, which belongs to no row", a.id)
			}
		}
		if n := s.count(d.waits); n != 0 {
			t.Errorf("%d rows say that they wait", n)
		}
	})
}

// TestRefused publishes a message that the broker rejects. The relay retries with growing delays,
// and finally marks the row as failed in the table's own way.
func TestRefused(t *testing.T) {
	each(t, all, func(t *testing.T, d described, server tabletest.Server) {
		s := newScene(t, d, server)
		s.exec("INSERT INTO orders (id) VALUES ('bad'), ('good')")
		for _, aggregate := range []string{"bad", "good"} {
			kind := "order.changed"
			if aggregate == "bad" {
				kind = nowhere
			}
			for {
				if _, err := s.change(t.Context(), aggregate, kind); err == nil {
					break
				}
			}
		}
		watch := &watched{Publisher: s.queue.publisher()}
		const base = 60 * time.Millisecond
		s.start(watch, relay.Config{Retry: retry.Policy{Attempts: 4, First: base}})
		until(t, "the refused row says that it has failed", func() bool { return s.count(d.failed+" AND $"+d.attempts+"$ = 4") == 1 })
		if n := s.count(d.published); n != 1 {
			t.Errorf("%d rows are published, want the other one", n)
		}
		pauses := watch.pauses()
		if len(pauses) != 3 || pauses[0] < base || pauses[1] < 2*base || pauses[2] < 4*base { // a busy machine makes them longer
			t.Errorf("the pauses were %v, want three that grow: of %v at least, and twice as much each", pauses, base)
		}
		var reason string
		query := "SELECT " + quote(server.Dialect, d.lastError) + " FROM " + quote(server.Dialect, d.table) + " WHERE " +
			quoted(server.Dialect, d.failed)
		if err := server.DB.QueryRowContext(t.Context(), query).Scan(&reason); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(reason, "the name has 280 bytes") {
			t.Errorf("the error is %q, which does not say what is wrong", reason)
		}
	})
}

// watched records when a rejected message is sent.
type watched struct {
	postrider.Publisher
	mu    sync.Mutex
	times []time.Time
}

func (w *watched) Publish(ctx context.Context, msgs []postrider.Message) []error {
	for i := range msgs {
		if msgs[i].Type == nowhere {
			w.mu.Lock()
			w.times = append(w.times, time.Now())
			w.mu.Unlock()
		}
	}
	return w.Publisher.Publish(ctx, msgs)
}

func (w *watched) pauses() (list []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.times); i++ {
		list = append(list, w.times[i].Sub(w.times[i-1]))
	}
	return list
}
