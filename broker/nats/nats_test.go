package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

func event(name, key string, n int) postrider.Message {
	m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: key}, []byte(fmt.Sprint(n)))
	m.Topic = name
	return m
}

// addStream creates a stream and returns its subject.
func addStream(t *testing.T, url string, change func(*jetstream.StreamConfig)) string {
	t.Helper()
	name := fmt.Sprintf("special-%d-%d", time.Now().UnixNano(), names.Add(1))
	config := jetstream.StreamConfig{Name: name, Subjects: []string{name}, MaxMsgSize: -1}
	change(&config)
	if _, err := admin(t, url).CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	removeAfter(t, url, name)
	return name
}

// expectScope publishes a message between two good ones, which must be confirmed.
func expectScope(t *testing.T, p *nats.Publisher, m postrider.Message, good string, want postrider.Scope) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	errs := p.Publish(ctx, []postrider.Message{event(good, "before", 0), m, event(good, "after", 0)})
	if len(errs) != 3 || errs[1] == nil || errs[0] != nil || errs[2] != nil || postrider.ScopeOf(errs[1]) != want {
		t.Errorf("want %v for the second: got %v", want, errs)
	}
}

// TestRefused checks that nothing is sent which NATS would change, drop, or interpret as a command.
func TestRefused(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	for _, atomically := range []bool{false, true} {
		good := create(t, url, atomically, 1)
		p := publisher(t, nats.Config{URL: url, Stream: streamOf(good, atomically), Atomic: atomically})
		defer p.Close()
		for _, header := range []string{"two words", "colon:", "umläut", "Nats-Rollup", "nats-msg-id", "Status", "content-type"} {
			m := event(good, "k", 0)
			m.Headers = map[string]string{header: "all"}
			expectScope(t, p, m, good, postrider.ScopeMessage)
		}
		for _, subject := range []string{"a b", "a..b", ".a", "a.", "a.*", ">", "$JS.API.STREAM.PURGE.x", "line\nbreak", strings.Repeat("a", 2000)} {
			expectScope(t, p, event(subject, "k", 0), good, postrider.ScopeMessage)
		}
	}
}

func TestStreamLimits(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	good := create(t, url, true, 1)
	small := addStream(t, url, func(c *jetstream.StreamConfig) { c.MaxMsgSize, c.AllowAtomicPublish = 1000, true })
	full := addStream(t, url, func(c *jetstream.StreamConfig) {
		c.MaxMsgs, c.Discard, c.AllowAtomicPublish = 1, jetstream.DiscardNew, true
	})
	for _, atomically := range []bool{false, true} {
		p := publisher(t, nats.Config{URL: url, Stream: streamOf(small, atomically), Atomic: atomically})
		defer p.Close()
		large := event(small, "k", 0)
		large.Payload = make([]byte, 2000)
		expectScope(t, p, large, small, postrider.ScopeMessage)

		p = publisher(t, nats.Config{URL: url, Stream: streamOf(full, atomically), Atomic: atomically})
		defer p.Close()
		p.Publish(t.Context(), []postrider.Message{event(full, "k", 0)})
		for _, err := range p.Publish(t.Context(), []postrider.Message{event(full, "k", 1), event(full, "other", 1)}) {
			if postrider.ScopeOf(err) != postrider.ScopeName {
				t.Errorf("a stream that is full: got %v", err)
			}
		}
		expectNeighbour(t, p, atomically, event(full, "k", 2), event(good, "k", 0))

		p = publisher(t, nats.Config{URL: url, Stream: strings.ReplaceAll(good, ".", "_"), Atomic: atomically})
		defer p.Close()
		expectScope(t, p, event(small, "k", 0), good, postrider.ScopeName)
	}
}

// TestStreamDeleted deletes a stream while a publisher uses it.
func TestStreamDeleted(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	for _, atomically := range []bool{false, true} {
		gone := addStream(t, url, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = atomically })
		p := publisher(t, nats.Config{URL: url, Stream: streamOf(gone, atomically), Atomic: atomically})
		defer p.Close()
		msgs := []postrider.Message{event(gone, "a", 0), event(gone, "b", 0)}
		if errs := p.Publish(t.Context(), msgs); errs != nil {
			t.Fatal(errs)
		}
		if err := admin(t, url).DeleteStream(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		for i, err := range p.Publish(t.Context(), msgs) {
			if postrider.ScopeOf(err) != postrider.ScopeName {
				t.Errorf("message %d: got %v", i, err)
			}
		}
		expectNeighbour(t, p, atomically, event(gone, "a", 1), event(create(t, url, true, 1), "k", 0))
	}
}

// TestOneNameInManyParts publishes several batches, with one subject that no stream has: only later
// messages of its key must wait, in later batches too.
func TestOneNameInManyParts(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	for _, atomically := range []bool{false, true} {
		good := create(t, url, atomically, 1)
		p := publisher(t, nats.Config{URL: url, Stream: streamOf(good, atomically), Atomic: atomically})
		defer p.Close()
		msgs := make([]postrider.Message, 1300)
		for i := range msgs {
			msgs[i] = event(good, fmt.Sprint(i%100), i)
		}
		msgs[3].Topic = "missing.stream"
		errs := p.Publish(t.Context(), msgs)
		if len(errs) != len(msgs) {
			t.Fatalf("got %d errors for %d messages", len(errs), len(msgs))
		}
		for i, err := range errs {
			switch behind := i > 3 && i%100 == 3; {
			case i == 3 && postrider.ScopeOf(err) != postrider.ScopeName:
				t.Errorf("message %d: got %v", i, err)
			case behind && atomically && !errors.Is(err, postrider.ErrNotTried):
				t.Errorf("message %d: got %v, and an earlier one of its key has failed", i, err)
			case i != 3 && !behind && err != nil:
				t.Errorf("message %d: got %v", i, err)
			}
		}
	}
}

// TestNothingBehindAFailedPart publishes several atomic batches, limited by count or by bytes, and
// one message of the first batch is refused: nothing of its key may be stored, from later batches
// either, and everything else must be.
func TestNothingBehindAFailedPart(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	for _, c := range []struct{ messages, size int }{{1300, 1}, {60, 200 << 10}} {
		name := create(t, url, true, 1)
		p := publisher(t, nats.Config{URL: url, Stream: streamOf(name, true), Atomic: true})
		defer p.Close()
		msgs := make([]postrider.Message, c.messages)
		for i := range msgs {
			msgs[i] = event(name, fmt.Sprint(i%10), i)
			msgs[i].Payload = append(msgs[i].Payload, make([]byte, c.size)...)
		}
		msgs[3].Headers = map[string]string{"note": "two\nlines"}
		errs := p.Publish(t.Context(), msgs)
		if len(errs) != len(msgs) {
			t.Fatalf("got %d errors for %d messages", len(errs), len(msgs))
		}
		for i, err := range errs {
			behind := i > 3 && i%10 == 3
			if (err != nil) != (i == 3 || behind) || behind && !errors.Is(err, postrider.ErrNotTried) {
				t.Errorf("%d messages of %d bytes: message %d: got %v", c.messages, c.size, i, err)
			}
		}
		stream, err := admin(t, url).Stream(t.Context(), streamOf(name, true))
		if err != nil {
			t.Fatal(err)
		}
		if stored, want := stream.CachedInfo().State.Msgs, c.messages*9/10; stored != uint64(want) {
			t.Errorf("%d messages are stored, want %d", stored, want)
		}
	}
}

// expectNeighbour checks that a failing message does not affect one of another stream. An atomic
// publisher has one stream.
func expectNeighbour(t *testing.T, p postrider.Publisher, atomically bool, bad, good postrider.Message) {
	t.Helper()
	if atomically {
		return
	}
	if errs := p.Publish(t.Context(), []postrider.Message{bad, good}); len(errs) != 2 || errs[0] == nil || errs[1] != nil {
		t.Errorf("beside one that fails: got %v", errs)
	}
}

// TestBatchesNotAllowed sends to a stream that does not accept batches: messages must go one by
// one, in order.
func TestBatchesNotAllowed(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	p := publisher(t, nats.Config{URL: url, Stream: streamOf(name, true), Atomic: true})
	defer p.Close()
	msgs := make([]postrider.Message, 100)
	for i := range msgs {
		msgs[i] = event(name, fmt.Sprint(i%2), i/2)
	}
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	expectAll(t, consumer(t, nats.Config{URL: url, Name: name, Group: "g"}), map[string]int{"parcel/0": 50, "parcel/1": 50})
}

// TestBatchWithRepetitions sends overlapping atomic batches: a stream refuses them as a whole, but
// the publisher must confirm them.
func TestBatchWithRepetitions(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, true, 1)
	p := publisher(t, nats.Config{URL: url, Stream: streamOf(name, true), Atomic: true})
	defer p.Close()
	msgs := make([]postrider.Message, 2500)
	for i := range msgs {
		msgs[i] = event(name, fmt.Sprint(i%2), i/2)
	}
	for _, part := range [][]postrider.Message{msgs[:100], msgs[50:150], msgs[150:], msgs[2400:]} {
		if errs := p.Publish(t.Context(), part); errs != nil {
			t.Fatal(errs)
		}
	}
	stream, err := admin(t, url).Stream(t.Context(), strings.ReplaceAll(name, ".", "_"))
	if err != nil {
		t.Fatal(err)
	}
	if stored := stream.CachedInfo().State.Msgs; stored != uint64(len(msgs)) {
		t.Errorf("%d messages are stored, want %d", stored, len(msgs))
	}
	expectAll(t, consumer(t, nats.Config{URL: url, Name: name, Group: "g"}), map[string]int{"parcel/0": 1250, "parcel/1": 1250})
}

// receive returns the first message of a name.
func receive(t *testing.T, c *nats.Consumer) postrider.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := make(chan postrider.Message, 1)
	if err := c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
		select {
		case got <- m:
			cancel()
		default:
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-got:
		return m
	default:
		t.Fatal("nothing was received")
		return postrider.Message{}
	}
}

func TestRawKeepsTheKey(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	p := publisher(t, nats.Config{URL: url, Format: codec.Raw})
	defer p.Close()
	m := event(name, "k", 1)
	if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
		t.Fatal(errs)
	}
	got := receive(t, consumer(t, nats.Config{URL: url, Name: name, Group: "g", Format: codec.Raw}))
	if got.OrderKey() != "parcel/k" || got.ID != m.ID {
		t.Errorf("got %+v", got)
	}
}

func TestNotACloudEvent(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	p := publisher(t, nats.Config{URL: url, Format: codec.Raw})
	defer p.Close()
	m := event(name, "k", 1)
	m.Headers = map[string]string{"ce-specversion": "1.0"}
	if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
		t.Fatal(errs)
	}
	got := receive(t, consumer(t, nats.Config{URL: url, Name: name, Group: "g"}))
	if string(got.Payload) != "1" || got.Type != name || got.Headers["ce-specversion"] != "1.0" || got.ID != m.ID {
		t.Errorf("got %+v", got)
	}
}

func TestConsumerOfAnotherSubject(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := addStream(t, url, func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, c.Name+".more") })
	p := publisher(t, nats.Config{URL: url})
	defer p.Close()
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "k", 1)}); errs != nil {
		t.Fatal(errs)
	}
	receive(t, consumer(t, nats.Config{URL: url, Name: name, Group: "g"}))
	err := consumer(t, nats.Config{URL: url, Name: name + ".more", Group: "g"}).Consume(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), name+".more") {
		t.Errorf("got %v", err)
	}
}

// TestUnfitConsumer starts with an existing durable consumer: settings that lose messages must be
// refused, and the error must list all of them with their values and the required ones.
func TestUnfitConsumer(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := addStream(t, url, func(*jetstream.StreamConfig) {})
	add := func(group string, change func(*jetstream.ConsumerConfig)) {
		t.Helper()
		config := jetstream.ConsumerConfig{Durable: group, FilterSubject: name, AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1}
		change(&config)
		if _, err := admin(t, url).CreateConsumer(t.Context(), name, config); err != nil {
			t.Fatal(err)
		}
	}
	add("bad", func(c *jetstream.ConsumerConfig) {
		c.MaxDeliver, c.HeadersOnly, c.InactiveThreshold = 5, true, time.Hour
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := consumer(t, nats.Config{URL: url, Name: name, Group: "bad"}).Consume(ctx, nil)
	for _, want := range []string{"consumer bad", "max deliver is 5, want -1", "headers only is true, want false", "inactive threshold is 1h0m0s, want 0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	add("good", func(c *jetstream.ConsumerConfig) { c.AckWait = time.Minute })
	p := publisher(t, nats.Config{URL: url})
	defer p.Close()
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "k", 1)}); errs != nil {
		t.Fatal(errs)
	}
	receive(t, consumer(t, nats.Config{URL: url, Name: name, Group: "good"}))
}

func TestInspect(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	bad := addStream(t, url, func(c *jetstream.StreamConfig) {
		c.Storage, c.MaxMsgs, c.MaxAge, c.Duplicates = jetstream.MemoryStorage, 10, time.Hour, time.Second
	})
	single := create(t, url, false, 1)
	p := publisher(t, nats.Config{URL: url})
	defer p.Close()
	got, err := p.Inspect(t.Context(), []string{bad, single, "missing.stream"})
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(got)
	for _, want := range []string{"is in memory", "unread messages can be dropped", "1h0m0s", "for 1s only", "1 replica(s)", "missing.stream", "unknown"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in %+v", want, got)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := nats.NewPublisher(nats.Config{URL: "nats://u:secret@%zz", InFlight: -1, Group: "a b", Atomic: true, Format: "odd", CredentialsFile: "/nowhere"})
	for _, want := range []string{"URL", "InFlight", "Group", "Atomic", "format", "CredentialsFile"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in: %v", want, err)
		}
	}
	if strings.Contains(fmt.Sprint(err), "secret") {
		t.Errorf("the password is in: %v", err)
	}
	_, err = nats.NewConsumer(nats.Config{})
	for _, want := range []string{"URL", "Name", "Group"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in: %v", want, err)
		}
	}
}

// TestWrongPassword checks that a failed login is an outage, and that no error reveals the
// password.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	server := strings.TrimPrefix(need.Env(t, "POSTRIDER_TEST_NATS", "nats"), "nats://")
	p := publisher(t, nats.Config{URL: "nats://postrider:s3cret@" + server})
	defer p.Close()
	err := errors.Join(p.Publish(t.Context(), []postrider.Message{event("a", "b", 0)})...)
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}
