package rabbitmq_test

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/internal/need"
)

// newExchange creates an exchange with a queue that receives everything from it.
func newExchange(t *testing.T) (exchange, queue string) {
	t.Helper()
	exchange, queue = newName(), newQueue(t, nil)
	admin(t, func(ch *amqp.Channel) error {
		if err := ch.ExchangeDeclare(exchange, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
			return err
		}
		return ch.QueueBind(queue, "#", exchange, false, nil)
	})
	t.Cleanup(func() { admin(t, func(ch *amqp.Channel) error { return ch.ExchangeDelete(exchange, false, false) }) })
	return exchange, queue
}

// newUser creates a user with the given permissions and returns the server's URL for it.
func newUser(t *testing.T, configure, write, read string) (name, address2 string) {
	t.Helper()
	name = newName()
	ctl(t, "add_user", name, "secret")
	t.Cleanup(func() { ctl(t, "delete_user", name) })
	ctl(t, "set_permissions", name, configure, write, read)
	u, err := url.Parse(address(t))
	if err != nil {
		t.Fatal("not a URL")
	}
	u.User = url.UserPassword(name, "secret")
	return name, u.String()
}

// TestServerRefusesTheSize sends messages that pass the publisher's check but not the server's:
// each closes the channel, and must not affect other messages.
func TestServerRefusesTheSize(t *testing.T) {
	need.Own(t, "rabbitmq@crash")
	ctl(t, "eval", "application:set_env(rabbit, max_message_size, 65536).")
	t.Cleanup(func() { ctl(t, "eval", "application:set_env(rabbit, max_message_size, 134217728).") })
	name := newQueue(t, nil)
	p := publisher(t, nil)
	msgs := make([]postrider.Message, 100)
	want := make([]postrider.Class, len(msgs))
	for i := range msgs {
		msgs[i], want[i] = event(name, fmt.Sprint(i%20)), -1
	}
	for _, i := range []int{3, 50} { // keys 3 and 10: their later messages must not be sent
		msgs[i].Payload, want[i] = make([]byte, 70_000), postrider.ClassPermanent
		for behind := i + 20; behind < len(msgs); behind += 20 {
			want[behind] = postrider.ClassUnavailable
		}
	}
	errs := p.Publish(t.Context(), msgs)
	expectClasses(t, errs, want)
	t.Log(errs[3])
}

func TestForbiddenTopic(t *testing.T) {
	t.Parallel()
	exchange, queue := newExchange(t)
	user, url := newUser(t, "", ".*", "")
	ctl(t, "set_topic_permissions", user, exchange, "^allowed", ".*")
	p := publisher(t, func(c *rabbitmq.Config) { c.URL, c.Exchange = url, exchange })
	msgs := make([]postrider.Message, 200)
	want := make([]postrider.Scope, len(msgs))
	for i := range msgs {
		msgs[i], want[i] = event(queue, fmt.Sprint(i)), -1
		msgs[i].RoutingKey = "allowed.key"
		if i%5 == 4 { // each would close a channel
			msgs[i].RoutingKey, want[i] = "forbidden."+fmt.Sprint(i%2), postrider.ScopeName
		}
	}
	errs := p.Publish(t.Context(), msgs)
	expectScopes(t, errs, want)
	t.Log(errs[4])
}

// TestExchangeNotUsable checks that a missing or forbidden exchange is not attributed to a message,
// and that it is used once it exists.
func TestExchangeNotUsable(t *testing.T) {
	t.Parallel()
	exchange, queue := newExchange(t)
	user, url := newUser(t, "", "^$", "")
	p := publisher(t, func(c *rabbitmq.Config) { c.URL, c.Exchange = url, exchange })
	msgs := []postrider.Message{event(queue, "a"), event(queue, "b"), event(queue, "a")}
	all := []postrider.Scope{postrider.ScopeDestination, postrider.ScopeDestination, postrider.ScopeDestination}
	errs := p.Publish(t.Context(), msgs)
	if postrider.ScopeOf(errs[0]) != postrider.ScopeDestination || !strings.Contains(errs[0].Error(), "403") {
		t.Errorf("forbidden: got %v", errs[0])
	}
	for i, err := range errs {
		if err == nil || postrider.ClassOf(err) == postrider.ClassPermanent {
			t.Errorf("forbidden: message %d: %v", i, err)
		}
	}
	ctl(t, "set_permissions", user, "", ".*", "")
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Errorf("allowed again: got %v", errs)
	}

	missing := newName()
	p = publisher(t, func(c *rabbitmq.Config) { c.Exchange = missing })
	expectScopes(t, p.Publish(t.Context(), msgs), all)
	admin(t, func(ch *amqp.Channel) error {
		if err := ch.ExchangeDeclare(missing, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
			return err
		}
		return ch.QueueBind(queue, "", missing, false, nil)
	})
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Errorf("the exchange is there: got %v", errs)
	}
	admin(t, func(ch *amqp.Channel) error { return ch.ExchangeDelete(missing, false, false) })
	for i, err := range p.Publish(t.Context(), msgs) { // on a channel that was opened before
		if err == nil || postrider.ClassOf(err) == postrider.ClassPermanent {
			t.Errorf("deleted: message %d: %v", i, err)
		}
	}
	expectScopes(t, p.Publish(t.Context(), msgs), all)
}

// TestFullQueue checks that a queue that rejects messages does not make them permanent failures.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	name := newName()
	admin(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-max-length": 2, "x-overflow": "reject-publish"})
		return err
	})
	t.Cleanup(func() {
		admin(t, func(ch *amqp.Channel) error { _, err := ch.QueueDelete(name, false, false, false); return err })
	})
	p := publisher(t, nil)
	var errs []error
	for i := range 5 {
		errs = append(errs, p.Publish(t.Context(), []postrider.Message{event(name, fmt.Sprint(i))})...)
	}
	expectScopes(t, errs, []postrider.Scope{postrider.ScopeName, postrider.ScopeName, postrider.ScopeName})
}

// TestRejectedIsNotConfirmed uses a queue that accepts some messages and rejects others in between:
// the client's NotifyPublish reports many of the rejected ones as confirmed.
func TestRejectedIsNotConfirmed(t *testing.T) {
	t.Parallel()
	name := newName()
	admin(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-max-length": 20, "x-overflow": "reject-publish"})
		return err
	})
	t.Cleanup(func() {
		admin(t, func(ch *amqp.Channel) error { _, err := ch.QueueDelete(name, false, false, false); return err })
	})
	c, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: address(t), Name: name, InFlight: 5, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var received sync.Map
	var gate sync.RWMutex
	var run sync.WaitGroup
	run.Go(func() {
		_ = c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
			gate.RLock()
			defer gate.RUnlock()
			time.Sleep(time.Millisecond) // usually slower than the publisher, so that the queue is full repeatedly
			received.Store(m.ID, true)
			return nil
		})
	})
	p := publisher(t, nil)
	var confirmed []postrider.Message
	rejected := 0
	for n := range 20 {
		msgs := make([]postrider.Message, 500)
		for i := range msgs {
			msgs[i] = event(name, fmt.Sprint(i))
		}
		if n%4 == 0 { // at least these, on any machine
			gate.Lock()
		}
		errs := p.Publish(t.Context(), msgs)
		if n%4 == 0 {
			gate.Unlock()
		}
		for i := range msgs {
			if errs == nil || errs[i] == nil {
				confirmed = append(confirmed, msgs[i])
			} else if rejected++; postrider.ScopeOf(errs[i]) != postrider.ScopeName {
				t.Fatalf("rejected: %v", errs[i])
			}
		}
	}
	missing := func() (n int) {
		for _, m := range confirmed {
			if _, ok := received.Load(m.ID); !ok {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(10 * time.Second); missing() > 0 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	cancel()
	run.Wait()
	if n := missing(); n > 0 || rejected == 0 {
		t.Errorf("%d of %d confirmed messages have not arrived, %d were rejected", n, len(confirmed), rejected)
	}
}

// TestWhatDoesNotFitTheProtocol sends messages for which the client would close its connection.
func TestWhatDoesNotFitTheProtocol(t *testing.T) {
	t.Parallel()
	name := newQueue(t, nil)
	p := publisher(t, nil)
	long := strings.Repeat("x", 256)
	msgs := make([]postrider.Message, 5)
	for i := range msgs {
		msgs[i] = event(name, fmt.Sprint(i))
	}
	msgs[1].Topic = long
	msgs[2].ContentType = long
	msgs[3].Headers = map[string]string{long: "v"}
	msgs[4].Headers = map[string]string{"h": strings.Repeat("x", 64<<10-1)}
	refused := postrider.ClassPermanent
	expectClasses(t, p.Publish(t.Context(), msgs), []postrider.Class{-1, refused, refused, refused, -1})
}
