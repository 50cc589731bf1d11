package asynq_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	queue "github.com/hibiken/asynq"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/redis/asynq"
	"github.com/postrider/postrider/internal/need"
)

func open(t *testing.T, cfg asynq.Config) *asynq.Publisher {
	t.Helper()
	cfg.URL = strings.Replace(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"), "redis://", "asynq://", 1)
	p := publisher(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func event(payload string) postrider.Message {
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, []byte(payload))
	m.Topic = "order:placed"
	return m
}

func consume(t *testing.T, name string) (<-chan postrider.Message, func()) {
	t.Helper()
	c, err := asynq.NewConsumer(asynq.Config{URL: need.Env(t, "POSTRIDER_TEST_REDIS", "redis"), Queue: name})
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan postrider.Message, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
			handled <- m
			return nil
		})
	}()
	return handled, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = c.Close()
	}
}

func receive(t *testing.T, handled <-chan postrider.Message) postrider.Message {
	t.Helper()
	select {
	case m := <-handled:
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("no message has come")
		panic("unreachable")
	}
}

// Workers that do not use Postrider rely on this layout.
func TestTask(t *testing.T) {
	t.Parallel()
	inspector := queue.NewInspectorFromRedisClient(connect(t))
	for _, format := range []codec.Format{codec.CloudEvents, codec.Raw} {
		name := queueName(t)
		m := event(`{"n":1}`)
		m.WireID = "verify_" + m.ID.String()
		m.Headers = map[string]string{"traceparent": "00-1", "key": "mine"}
		p := open(t, asynq.Config{Queue: name, Format: format, MaxRetry: 3, TaskTimeout: time.Minute, Retention: time.Hour})
		if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
			t.Fatal(errs)
		}
		info, err := inspector.GetTaskInfo(name, m.WireID)
		if err != nil {
			t.Fatal(err)
		}
		if info.Type != "order:placed" || string(info.Payload) != `{"n":1}` || info.MaxRetry != 3 || info.Timeout != time.Minute || info.Retention != time.Hour {
			t.Errorf("got %+v", info)
		}
		want := map[string]string{"traceparent": "00-1", "h:key": "mine", "key": "order/42", "content-type": m.ContentType}
		if format == codec.CloudEvents {
			want["ce-id"], want["ce-type"], want["ce-subject"] = m.WireID, "order.placed", "42"
		}
		for header, value := range want {
			if info.Headers[header] != value {
				t.Errorf("header %s: got %q, want %q", header, info.Headers[header], value)
			}
		}
		handled, stop := consume(t, name)
		got := receive(t, handled)
		stop()
		if got.ID != m.ID || got.BrokerID() != m.WireID || got.OrderKey() != "order/42" || got.Headers["key"] != "mine" {
			t.Errorf("got %+v", got)
		}
	}
}

// For the retention time, a finished task still blocks its duplicates.
func TestRetention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retention time.Duration
		copies    int
	}{{time.Hour, 1}, {-1, 2}} {
		name := queueName(t)
		p := open(t, asynq.Config{Queue: name, Retention: c.retention})
		m, last := event("m"), event("last")
		copies := 0
		for _, msgs := range [][]postrider.Message{{m}, {m, last}} {
			if errs := p.Publish(t.Context(), msgs); errs != nil {
				t.Fatal(errs)
			}
			handled, stop := consume(t, name)
			for range msgs {
				got := receive(t, handled)
				if got.ID == m.ID {
					copies++
				}
				if got.ID == last.ID {
					break
				}
			}
			stop()
			copies += len(handled)
		}
		if copies != c.copies {
			t.Errorf("retention %v: the message was handled %d times, want %d", c.retention, copies, c.copies)
		}
	}
}

// A fault of the queue is not attributed to the message.
func TestQueueIsUnusable(t *testing.T) {
	need.Own(t, "redis@crash")
	c := connect(t)
	name := queueName(t)
	p := open(t, asynq.Config{Queue: name})
	if err := c.Set(t.Context(), "asynq:{"+name+"}:pending", "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	m := event("m")
	errs := p.Publish(t.Context(), []postrider.Message{m})
	if len(errs) != 1 || postrider.ScopeOf(errs[0]) != postrider.ScopeDestination {
		t.Errorf("wrong type: got %v", errs)
	}
	if err := c.Del(t.Context(), "asynq:{"+name+"}:pending").Err(); err != nil {
		t.Fatal(err)
	}
	if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
		t.Fatal(errs)
	}
	handled, stop := consume(t, name)
	if got := receive(t, handled); got.ID != m.ID {
		t.Errorf("got %+v", got)
	}
	stop()

	name = queueName(t)
	p = open(t, asynq.Config{Queue: name})
	if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	errs = p.Publish(t.Context(), []postrider.Message{event("m")})
	if err := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if len(errs) != 1 || postrider.ScopeOf(errs[0]) != postrider.ScopeDestination {
		t.Errorf("memory is full: got %v", errs)
	}
}

func TestForeignTask(t *testing.T) {
	t.Parallel()
	name := queueName(t)
	client := queue.NewClientFromRedisClient(connect(t))
	task := queue.NewTaskWithHeaders("foreign", []byte("no id"), map[string]string{"ce-specversion": "1.0"})
	if _, err := client.Enqueue(task, queue.Queue(name)); err != nil {
		t.Fatal(err)
	}
	handled, stop := consume(t, name)
	defer stop()
	if m := receive(t, handled); string(m.Payload) != "no id" || m.Type != "foreign" || m.Headers["ce-specversion"] != "1.0" {
		t.Errorf("got %+v", m)
	}
}

// TestDeadLetterQueue moves a task to another queue when its handler has failed twice, with asynq's own retries in between.
func TestDeadLetterQueue(t *testing.T) {
	t.Parallel()
	name, dead := queueName(t), queueName(t)
	m := event("0")
	if errs := open(t, asynq.Config{Queue: name}).Publish(t.Context(), []postrider.Message{m}); errs != nil {
		t.Fatal(errs)
	}
	c, err := asynq.NewConsumer(asynq.Config{URL: need.Env(t, "POSTRIDER_TEST_REDIS", "redis"), Queue: name, Attempts: 2, DeadLetter: dead})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	ended := make(chan error, 1)
	go func() {
		ended <- c.Consume(ctx, func(context.Context, postrider.Message) error {
			calls++
			panic("never")
		})
	}()
	handled, stop := consume(t, dead)
	defer stop()
	letter := receive(t, handled)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = c.Close()
	if letter.ID != m.ID || letter.Topic != m.Topic || letter.Headers["postrider-dead-attempts"] != "2" || calls != 2 {
		t.Errorf("after %d calls the dead letter is %+v", calls, letter)
	}
	if s := c.Stats(); s.Dead != 1 || s.Failures != 2 {
		t.Errorf("counts %+v", s)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	in, err := open(t, asynq.Config{}).Inspect(t.Context(), []string{"any"})
	if err != nil || !strings.Contains(fmt.Sprint(in.Settings), "{retention 24h0m0s}") || !strings.Contains(fmt.Sprint(in.Warnings), "two seconds") {
		t.Errorf("got %+v, %v", in, err)
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	_, err := asynq.NewPublisher(asynq.Config{URL: "http://u:secret@h", Format: "xml", Queue: "a{b}", TaskTimeout: 1, Connections: -1})
	for _, want := range []string{"url", "format", "queue", "task_timeout", "connections"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not mention %s", err, want)
		}
	}
	if strings.Contains(fmt.Sprint(err), "secret") {
		t.Errorf("the password is in %v", err)
	}
	if _, err := asynq.NewConsumer(asynq.Config{URL: "asynqs://h", InFlight: -1}); err == nil || !strings.Contains(err.Error(), "in_flight") {
		t.Errorf("got %v", err)
	}
}

func TestDriverOptions(t *testing.T) {
	t.Parallel()
	d, err := broker.ForURL("asynq://localhost")
	if err != nil {
		t.Fatal(err)
	}
	name := queueName(t)
	p, err := d.Open(&broker.Settings{
		URL:    strings.Replace(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"), "redis://", "asynq://", 1),
		Values: map[string]string{"queue": name, "max_retry": "0", "retention": "0s", "task_timeout": "5s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := event("m")
	if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
		t.Fatal(errs)
	}
	info, err := queue.NewInspectorFromRedisClient(connect(t)).GetTaskInfo(name, m.ID.String())
	if err != nil || info.MaxRetry != 0 || info.Retention != 0 || info.Timeout != 5*time.Second {
		t.Errorf("got %+v, %v", info, err)
	}
}
