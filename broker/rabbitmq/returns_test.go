package rabbitmq_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/internal/need"
)

// TestReturnsAreSeenBeforeConfirms mixes unroutable messages into many concurrent calls: the server
// confirms those too, after it has returned them.
func TestReturnsAreSeenBeforeConfirms(t *testing.T) {
	t.Parallel()
	total := 50_000
	if need.IsLong() {
		total = 1_000_000
	}
	name := newName() // neither durable nor persistent: only routing matters here
	admin(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, false, false, false, false, amqp.Table{"x-max-length": 1000})
		return err
	})
	t.Cleanup(func() {
		admin(t, func(ch *amqp.Channel) error { _, err := ch.QueueDelete(name, false, false, false); return err })
	})
	p := publisher(t, nil)
	const senders, size = 8, 500
	var sent, wronglyConfirmed, wronglyRefused, refused, failed atomic.Int64
	var run sync.WaitGroup
	begin := time.Now()
	for sender := range senders {
		run.Go(func() {
			msgs := make([]postrider.Message, size)
			for done := 0; done < total/senders; done += size {
				for i := range msgs {
					msgs[i] = event(name, fmt.Sprint(sender, done+i))
					if i%10 == (sender+done/size)%10 {
						msgs[i].Topic = "test-missing"
					}
				}
				errs := p.Publish(t.Context(), msgs)
				sent.Add(size)
				for i := range msgs {
					var err error
					if errs != nil {
						err = errs[i]
					}
					unroutable := msgs[i].Topic != name
					switch {
					case unroutable && err == nil:
						wronglyConfirmed.Add(1)
					case unroutable && postrider.ScopeOf(err) == postrider.ScopeName:
						refused.Add(1)
					case !unroutable && postrider.ScopeOf(err) == postrider.ScopeName:
						wronglyRefused.Add(1)
					case err != nil:
						failed.Add(1)
						t.Errorf("message failed: %v", err)
					}
				}
			}
		})
	}
	run.Wait()
	t.Logf("%d messages in %v: %d refused, %d wrongly confirmed, %d wrongly refused", sent.Load(), time.Since(begin).Round(time.Millisecond),
		refused.Load(), wronglyConfirmed.Load(), wronglyRefused.Load())
	if wronglyConfirmed.Load() != 0 || wronglyRefused.Load() != 0 || failed.Load() != 0 {
		t.Errorf("%d wrongly confirmed, %d wrongly refused, %d failed", wronglyConfirmed.Load(), wronglyRefused.Load(), failed.Load())
	}
}

func event(name, key string) postrider.Message {
	m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: key}, []byte("{}"))
	m.Topic = name
	return m
}

// TestNothingBehindAReturn sends one key to several queues, one of which is missing.
func TestNothingBehindAReturn(t *testing.T) {
	t.Parallel()
	name := newQueue(t, nil)
	p := publisher(t, func(c *rabbitmq.Config) { c.Pipeline = true })
	msgs := []postrider.Message{
		event(name, "a"), event("test-missing", "a"), event(name, "b"), event(name, "a"), event("test-missing", "b"), event(name, "b"),
	}
	want := []postrider.Scope{-1, postrider.ScopeName, -1, postrider.ScopeDestination, postrider.ScopeName, postrider.ScopeDestination}
	errs := p.Publish(t.Context(), msgs)
	expectScopes(t, errs, want)
	if !errors.Is(errs[3], postrider.ErrNotTried) || !errors.Is(errs[5], postrider.ErrNotTried) {
		t.Errorf("behind a failure: got %v and %v", errs[3], errs[5])
	}
}

// expectClasses compares errors with classes, -1 being nil.
func expectClasses(t *testing.T, errs []error, want []postrider.Class) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("got %d errors %v, want %d", len(errs), errs, len(want))
	}
	for i, class := range want {
		if (errs[i] == nil) != (class == -1) || errs[i] != nil && postrider.ClassOf(errs[i]) != class {
			t.Errorf("message %d: %v error %v, want %v", i, postrider.ClassOf(errs[i]), errs[i], class)
		}
	}
}

// expectScopes compares errors with scopes, -1 being nil.
func expectScopes(t *testing.T, errs []error, want []postrider.Scope) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("got %d errors %v, want %d", len(errs), errs, len(want))
	}
	for i, scope := range want {
		if (errs[i] == nil) != (scope == -1) || errs[i] != nil && postrider.ScopeOf(errs[i]) != scope {
			t.Errorf("message %d: error %v with scope %v, want %v", i, errs[i], postrider.ScopeOf(errs[i]), scope)
		}
	}
}

// TestQueueOfANodeThatIsDown makes a queue unavailable, as the loss of its node does: its messages
// must not be refused permanently.
func TestQueueOfANodeThatIsDown(t *testing.T) {
	t.Parallel()
	name := newQueue(t, map[string]string{"queue_type": "classic"})
	p := publisher(t, nil)
	msgs := []postrider.Message{event(name, "a")}
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	record := fmt.Sprintf(`R = rabbit_misc:r(<<"/">>, queue, <<"%s">>), `, name)
	row := ctl(t, "eval", record+`[Q] = mnesia:dirty_read(rabbit_queue, R), persistent_term:put(R, Q), mnesia:dirty_delete(rabbit_queue, R).`)
	t.Logf("taken away: %.40s", row)
	back := sync.OnceFunc(func() {
		ctl(t, "eval", record+`mnesia:dirty_write(rabbit_queue, persistent_term:get(R)), persistent_term:erase(R).`)
	})
	t.Cleanup(back)
	errs := p.Publish(t.Context(), msgs)
	expectScopes(t, errs, []postrider.Scope{postrider.ScopeName})
	t.Log(errs[0])
	back()
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
}
