package adopt_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/table/tabletest"
)

// write commits one row, with columns in addition to those that every producer fills.
func (s *scene) write(e event, more map[string]any) error {
	s.t.Helper()
	e.id = postrider.NewID()
	e.kind = "order.changed"
	values := s.d.row(e)
	var names []string
	for name, value := range more {
		names = append(names, name)
		values = append(values, value)
	}
	_, err := s.server.DB.ExecContext(s.t.Context(), s.d.insert(s.server.Dialect, names...), values...)
	return err
}

// TestLater writes a row that is due later, in the tables that support it.
func TestLater(t *testing.T) {
	for preset, column := range map[string]string{"events-bigserial": "available_at", "integration-events": "deliver_after"} {
		each(t, []described{named(t, preset)}, func(t *testing.T, d described, server tabletest.Server) {
			s := newScene(t, d, server)
			due := time.Now().Add(900 * time.Millisecond).UTC()
			if err := s.write(event{aggregate: "later", n: 1}, map[string]any{column: due}); err != nil {
				t.Fatal(err)
			}
			if err := s.write(event{aggregate: "now", n: 1}, nil); err != nil {
				t.Fatal(err)
			}
			s.start(s.queue.publisher(), relay.Config{})
			until(t, "the other row is published", func() bool { return s.count(d.published) >= 1 })
			if time.Now().Before(due) {
				if came := s.queue.take(); len(came) != 1 || came[0].Of != "now" {
					t.Errorf("before its time, %v has arrived", came)
				}
			}
			until(t, "the row whose time has come is published", func() bool { return s.count(d.published) == 2 })
			if time.Now().Before(due) {
				t.Errorf("it was published %v before its time", time.Until(due))
			}
		})
	}
}

// TestPriority writes a row that overtakes earlier ones.
func TestPriority(t *testing.T) {
	each(t, []described{named(t, "integration-events")}, func(t *testing.T, d described, server tabletest.Server) {
		s := newScene(t, d, server)
		s.cfg.Shards = 1
		for i := range 30 {
			if err := s.write(event{aggregate: fmt.Sprint(i), n: 1}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.write(event{aggregate: "urgent", n: 1}, map[string]any{"priority": 9}); err != nil {
			t.Fatal(err)
		}
		sent := &sequence{Publisher: s.queue.publisher()}
		s.start(sent, relay.Config{BatchSize: 5})
		until(t, "all are published", func() bool { return s.count(d.published) == 31 })
		if at := sent.place("urgent"); at != 0 {
			t.Errorf("the urgent message was sent as number %d", at+1)
		}
	})
}

// sequence records the order in which messages are sent.
type sequence struct {
	postrider.Publisher
	mu   sync.Mutex
	sent []string
}

func (q *sequence) Publish(ctx context.Context, msgs []postrider.Message) []error {
	q.mu.Lock()
	for i := range msgs {
		q.sent = append(q.sent, msgs[i].AggregateID)
	}
	q.mu.Unlock()
	return q.Publisher.Publish(ctx, msgs)
}

func (q *sequence) place(aggregate string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Index(q.sent, aggregate)
}

// TestDedupKey publishes a fact twice: the table's own constraint rejects the second row, and one
// message arrives.
func TestDedupKey(t *testing.T) {
	each(t, []described{named(t, "integration-events")}, func(t *testing.T, d described, server tabletest.Server) {
		s := newScene(t, d, server)
		if err := s.write(event{aggregate: "42", n: 1}, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.write(event{aggregate: "42", n: 1}, nil); err == nil {
			t.Error("the second row with the same dedup key was accepted")
		}
		s.start(s.queue.publisher(), relay.Config{})
		until(t, "it is published", func() bool { return s.count(d.published) == 1 })
		came := s.queue.take()
		if len(came) != 1 {
			t.Fatalf("%d messages have arrived", len(came))
		}
		if got := came[0].headers["source"]; got != "shop" {
			t.Errorf("the metadata have not arrived: the headers are %v", came[0].headers)
		}
	})
}

// TestDebezium uses the columns of Debezium's outbox event router, where delivered rows are
// deleted.
func TestDebezium(t *testing.T) {
	each(t, []described{debezium}, func(t *testing.T, d described, server tabletest.Server) {
		s := newScene(t, d, server)
		s.start(s.queue.publisher(), relay.Config{})
		committed := s.produce(4, 10)
		until(t, "the table is empty", func() bool { return s.count("1 = 1") == 0 })
		if n := inOrder(t, s.queue.take()); n != committed {
			t.Errorf("%d different messages have arrived of %d", n, committed)
		}
	})
}
