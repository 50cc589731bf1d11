package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/sqs/internal/service"
)

func event(name, key string, payload []byte) postrider.Message {
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: key}, payload)
	m.Topic = name
	return m
}

// collect returns the messages of a consumer once there are count of them.
func collect(t *testing.T, c *Consumer, count int) (got []postrider.Message) {
	t.Helper()
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	arrived := make(chan postrider.Message)
	go func() {
		for len(got) < count {
			got = append(got, <-arrived)
		}
		cancel()
	}()
	err := c.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		select {
		case arrived <- m:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil || len(got) < count {
		t.Fatalf("got %d of %d messages, %v", len(got), count, err)
	}
	return got
}

// TestTopicWithEnvelope sends through a standard topic to a queue without raw delivery, in the
// account of the credentials.
func TestTopicWithEnvelope(t *testing.T) {
	t.Parallel()
	name := newName("")
	makeTopic(t, name, nil)
	own := local()
	own.BaseEndpoint = aws.String(moto(t)) // also for the account query
	p := open(t, Config{URL: "sns://us-east-1", AWS: own})
	defer p.Close()
	text, binary := event(name, "1", []byte(`{"n":1}`)), event(name, "2", []byte{0, 1, 255})
	for i := range 20 {
		text.Headers = map[string]string{"single": "x"}
		if binary.Headers == nil {
			binary.Headers = make(map[string]string)
		}
		binary.Headers[fmt.Sprint("header-", i)] = fmt.Sprint("välue\n", i)
	}
	if errs := p.Publish(t.Context(), []postrider.Message{text, binary}); errs != nil {
		t.Fatal(errs)
	}
	for _, m := range collect(t, subscribe(t, Config{Endpoint: moto(t), Name: name}), 2) {
		want := text
		if m.ID == binary.ID {
			want = binary
		}
		if m.ID != want.ID || string(m.Payload) != string(want.Payload) || m.Type != want.Type || m.OrderKey() != want.OrderKey() || m.ContentType != want.ContentType {
			t.Errorf("got %+v, want %+v", m, want)
		}
		for header, value := range want.Headers {
			if m.Headers[header] != value {
				t.Errorf("header %s is %q, want %q", header, m.Headers[header], value)
			}
		}
	}
}

// TestQueueWithLowerLimit lets a queue refuse a whole request because of one message: the others
// must be sent without it.
func TestQueueWithLowerLimit(t *testing.T) {
	t.Parallel()
	server := moto(t)
	p := open(t, Config{Endpoint: server})
	defer p.Close()
	q := p.service.(*service.Queues)
	name := queue(t, server, ".fifo")
	address, err := q.Locate(t.Context(), name)
	if err == nil {
		_, err = q.Client.SetQueueAttributes(t.Context(), &awssqs.SetQueueAttributesInput{
			QueueUrl: &address, Attributes: map[string]string{"MaximumMessageSize": "1024", "MessageRetentionPeriod": "3600"},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	var msgs []postrider.Message
	for i := range 5 {
		msgs = append(msgs, event(name, fmt.Sprint(i), []byte("small")))
	}
	msgs[2].Payload = make([]byte, 2000)
	msgs = append(msgs, event(name, "2", nil))
	errs := p.Publish(t.Context(), msgs)
	for i, err := range errs {
		switch {
		case i == 2 && (postrider.ClassOf(err) != postrider.ClassPermanent || postrider.ScopeOf(err) != postrider.ScopeMessage),
			i == 5 && !errors.Is(err, postrider.ErrNotTried), i != 2 && i != 5 && err != nil:
			t.Errorf("message %d: %v", i, err)
		}
	}
	if got := collect(t, subscribe(t, Config{Endpoint: server, Name: name}), 4); len(errs) != 6 || len(got) != 4 {
		t.Errorf("%d errors, %d messages", len(errs), len(got))
	}
	in, err := p.Inspect(t.Context(), []string{name})
	if text := fmt.Sprint(in); err != nil || !strings.Contains(text, "after 1h0m0s") || !strings.Contains(text, "{MaximumMessageSize ("+name+") 1024}") {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestKeptInvisible handles a message for longer than its visibility timeout: no other consumer may
// receive it meanwhile.
func TestKeptInvisible(t *testing.T) {
	t.Parallel()
	server := elasticmq(t)
	name := queue(t, server, "")
	p := open(t, Config{Endpoint: server})
	defer p.Close()
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "k", []byte("x"))}); errs != nil {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	handle := func(context.Context, postrider.Message) error {
		if calls.Add(1) == 1 {
			time.Sleep(2500 * time.Millisecond) // longer than the visibility timeout
			cancel()
		}
		return nil
	}
	ended := make(chan error, 2)
	for range 2 {
		c := subscribe(t, Config{Endpoint: server, Name: name, VisibilityTimeout: time.Second})
		defer c.Close()
		go func() { ended <- c.Consume(ctx, handle) }()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("the handler was called %d times", calls.Load())
	}
}

// TestLongPoll sends a message while a request waits for it, and checks that Consume ends no later
// than the request.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	server := elasticmq(t)
	name := queue(t, server, ".fifo")
	p := open(t, Config{Endpoint: server})
	defer p.Close()
	began := time.Now()
	time.AfterFunc(200*time.Millisecond, func() {
		if errs := p.Publish(t.Context(), []postrider.Message{event(name, "k", []byte("x"))}); errs != nil {
			t.Error(errs)
		}
	})
	collect(t, subscribe(t, Config{Endpoint: server, Name: name, PollWait: time.Second}), 1)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	server := moto(t)
	lonely := newName("") // moto reports this for every topic
	sns := open(t, Config{URL: "sns://us-east-1", Endpoint: server, Account: account})
	defer sns.Close()
	if err := sns.service.Create(t.Context(), lonely); err != nil {
		t.Fatal(err)
	}
	in, err := sns.Inspect(t.Context(), []string{lonely, "missing.fifo", "a/b"})
	text := fmt.Sprint(in)
	for _, want := range []string{
		"SNS has stored", "{SubscriptionsConfirmed (" + lonely + ") 0}", "topic " + lonely + " has no subscription", lonely + " is a standard one",
		"aws sns create-topic --name missing.fifo --attributes FifoTopic=true", `"a/b" is no name`,
	} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("got %s, %v: want %s", text, err, want)
		}
	}
	if len(in.Warnings) != 4 {
		t.Errorf("got %d warnings", len(in.Warnings))
	}
}

func TestWithoutCredentials(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Endpoint: elasticmq(t), AWS: &aws.Config{
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("expired") }),
	}})
	defer p.Close()
	errs := p.Publish(t.Context(), []postrider.Message{event("any", "k", nil)})
	if len(errs) != 1 || postrider.ClassOf(errs[0]) != postrider.ClassUnavailable || postrider.ScopeOf(errs[0]) != postrider.ScopeDestination {
		t.Errorf("got %v", errs)
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	_, err := NewConsumer(Config{
		URL: "sns://eu", Name: "a b", DeadLetter: "a.b", Endpoint: "localhost", Account: "1", PollWait: time.Minute, VisibilityTimeout: 13 * time.Hour, InFlight: -1, Profile: "p",
		AWS: &aws.Config{Retryer: func() aws.Retryer { return aws.NopRetryer{} }, RetryMaxAttempts: 3}, Format: "xml",
	})
	for _, want := range []string{
		"sns://", "(name)", "(dead_letter)", "(endpoint)", "(account)", "(poll_wait)", "(visibility_timeout)", "(in_flight)", "(profile)", "AWS.Retryer", "AWS.RetryMaxAttempts", "format",
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not mention %s", err, want)
		}
	}
	for _, address := range []string{"", "sqs://", "sqs://user:secret@host", "sqs://eu-central-1/queue", "https://eu-central-1"} {
		if _, err := NewPublisher(Config{URL: address}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := NewConsumer(Config{URL: "sqs://eu-central-1", Name: "a", DeadLetter: "a"}); err == nil {
		t.Error("a queue is its own dead-letter queue")
	}
}
