package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/option"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	_, err := NewPublisher(Config{
		URL: "pubsub://joe:secret@project?x=1", Endpoint: "eu", Insecure: true, CredentialsFile: "f", Requests: -1, Format: "xml",
		Options: []option.ClientOption{option.WithEndpoint("x:1"), option.WithoutAuthentication(), option.WithGRPCConn(nil), option.WithHTTPClient(nil)},
	})
	expectAll(t, err, "URL", "Endpoint is not", "not on this machine", "Insecure (insecure) and CredentialsFile", "Requests", "format",
		"WithEndpoint", "WithoutAuthentication", "WithGRPCConn", "WithHTTPClient")
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is reported: %v", err)
	}
	_, err = NewConsumer(Config{URL: "pubsub://p", AckDeadline: time.Second})
	expectAll(t, err, "AckDeadline", "subscriptions")
	_, err = NewConsumer(Config{URL: "pubsub://p", Name: "order", DeadLetter: "order"})
	expectAll(t, err, "dead_letter")
	for _, endpoint := range []string{"localhost:1", "127.0.0.1:1", "[::1]:1"} {
		if _, err := NewPublisher(Config{URL: "pubsub://example.com:project/", Endpoint: endpoint, Insecure: true}); err != nil {
			t.Error(err)
		}
	}
}

func expectAll(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, want := range parts {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not reported: %v", want, err)
		}
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	cfg := Config{project: "acme"}
	for name, want := range map[string]string{
		"orders":                     "projects/acme/topics/orders",
		"a.b_c~d+e%f-9":              "projects/acme/topics/a.b_c~d+e%f-9",
		"projects/other/topics/abc":  "projects/other/topics/abc",
		"projects/other/topics/a b":  "",
		"projects/o/subscriptions/a": "",
		"":                           "",
		"ab":                         "",
		"9lives":                     "",
		"a b c":                      "",
		"google-orders":              "",
		strings.Repeat("x", 256):     "",
	} {
		if got, err := cfg.path("topics", name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q and %v, want %q", name, got, err, want)
		}
	}
}

func open(t *testing.T, change func(*Config)) *Publisher {
	t.Helper()
	cfg := Config{URL: "pubsub://test-project", Endpoint: theServer.address, Insecure: true}
	if change != nil {
		change(&cfg)
	}
	p, err := NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func message(topic, key, text string) postrider.Message {
	m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: key}, []byte(text))
	m.Topic = topic
	return m
}

// TestLimits checks that a message over one of the service's limits is refused before it is sent,
// alone, and with a clear error.
func TestLimits(t *testing.T) {
	t.Parallel()
	topic := createTopic(t, nil)
	p := open(t, nil)
	for want, spoil := range map[string]func(*postrider.Message){
		"message has":           func(m *postrider.Message) { m.Payload = make([]byte, maxRequest-100) },
		"ordering key has 1035": func(m *postrider.Message) { m.AggregateID = strings.Repeat("k", 1024); m.AggregateType = "aggregates" },
		"h has 1025":            func(m *postrider.Message) { m.Headers = map[string]string{"h": strings.Repeat("v", 1025)} },
		"has 257 bytes":         func(m *postrider.Message) { m.Headers = map[string]string{strings.Repeat("h", 257): "v"} },
		"begins with goog":      func(m *postrider.Message) { m.Headers = map[string]string{"googclient": "v"} },
		"not valid UTF-8":       func(m *postrider.Message) { m.Headers = map[string]string{"h": "\xff"} },
		"attributes, more than": func(m *postrider.Message) {
			m.Headers = make(map[string]string)
			for i := range 100 {
				m.Headers[fmt.Sprint("h", i)] = "v"
			}
		},
	} {
		bad := message(topic, "bad", "x")
		spoil(&bad)
		errs := p.Publish(t.Context(), []postrider.Message{message(topic, "good", "1"), bad, message(topic, "good", "2")})
		if len(errs) != 3 || errs[0] != nil || errs[2] != nil {
			t.Fatalf("%s: got %v", want, errs)
		}
		if postrider.ScopeOf(errs[1]) != postrider.ScopeMessage || !strings.Contains(errs[1].Error(), want) {
			t.Errorf("got %v, want %q", errs[1], want)
		}
	}
	full := message(topic, "full", "")
	full.Payload = make([]byte, maxRequest-1000)
	if errs := p.Publish(t.Context(), []postrider.Message{full}); errs != nil {
		t.Errorf("below the limit: %v", errs)
	}
}

// TestNothingBehindAFailureElsewhere checks the order of a key whose messages go to different
// topics.
func TestNothingBehindAFailureElsewhere(t *testing.T) {
	t.Parallel()
	good := createTopic(t, nil)
	errs := open(t, nil).Publish(t.Context(), []postrider.Message{
		message(good, "k", "1"), message("no-such-topic", "k", "2"), message(good, "k", "3"), message(good, "other", "4"),
	})
	if len(errs) != 4 || errs[0] != nil || errs[3] != nil {
		t.Fatalf("got %v", errs)
	}
	if postrider.ScopeOf(errs[1]) != postrider.ScopeName ||
		!strings.Contains(errs[1].Error(), "gcloud pubsub topics create no-such-topic --project=test-project") {
		t.Errorf("got %v", errs[1])
	}
	if !errors.Is(errs[2], postrider.ErrNotTried) {
		t.Errorf("got %v behind a failure", errs[2])
	}
}

// TestRefusedByTheService lets the service refuse one message of a request: the others must be
// confirmed, unless they are behind it in its key.
func TestRefusedByTheService(t *testing.T) {
	t.Parallel()
	topic := createTopic(t, nil)
	spoilt := func(key, text string) postrider.Message {
		m := message(topic, key, text)
		m.Headers = map[string]string{"spoilt": "yes"}
		return m
	}
	keyless := func(m postrider.Message) postrider.Message {
		m.AggregateType, m.AggregateID = "", ""
		return m
	}
	msgs := []postrider.Message{
		message(topic, "k", "0"), spoilt("k", "1"), message(topic, "k", "2"),
		keyless(message(topic, "", "3")), keyless(spoilt("", "4")), keyless(message(topic, "", "5")),
	}
	errs := open(t, nil).Publish(t.Context(), msgs)
	if len(errs) != 6 {
		t.Fatalf("got %v", errs)
	}
	for i, want := range []postrider.Class{0, postrider.ClassPermanent, postrider.ClassUnavailable, 0, postrider.ClassPermanent, 0} {
		if postrider.ClassOf(errs[i]) != want || (want == 0) != (errs[i] == nil) {
			t.Errorf("message %d: got %v, want %v", i, errs[i], want)
		}
	}
}

// TestRequests checks that messages of one key share a request, and so do messages without a key.
func TestRequests(t *testing.T) {
	t.Parallel()
	server := newFake()
	defer server.grpc.Stop()
	p := open(t, func(c *Config) { c.Endpoint = server.address })
	d, s := settings(server.address, nil)
	if err := d.Create(t.Context(), s, "orders"); err != nil {
		t.Fatal(err)
	}
	var msgs []postrider.Message
	for i := range 2500 {
		msgs = append(msgs, message("orders", fmt.Sprint(i%2), "x"))
	}
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	if n := server.publishes.Load(); n != 4 {
		t.Errorf("1250 messages of each of two keys have taken %d requests, want 4", n)
	}
}

func TestMeaning(t *testing.T) {
	t.Parallel()
	with := func(code codes.Code, reason string) error {
		s, err := status.New(code, "x").WithDetails(&errdetails.ErrorInfo{Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
		wrapped, _ := apierror.FromError(s.Err())
		return wrapped
	}
	for _, c := range []struct {
		err   error
		class postrider.Class
		scope postrider.Scope
	}{
		{status.Error(codes.NotFound, "x"), postrider.ClassUnavailable, postrider.ScopeName},
		{status.Error(codes.PermissionDenied, "x"), postrider.ClassUnavailable, postrider.ScopeName},
		{with(codes.PermissionDenied, "IAM_PERMISSION_DENIED"), postrider.ClassUnavailable, postrider.ScopeName},
		{with(codes.PermissionDenied, "SERVICE_DISABLED"), postrider.ClassUnavailable, postrider.ScopeDestination},
		{status.Error(codes.FailedPrecondition, "x"), postrider.ClassUnavailable, postrider.ScopeName},
		{status.Error(codes.Unauthenticated, "x"), postrider.ClassUnavailable, postrider.ScopeDestination},
		{status.Error(codes.Unavailable, "x"), postrider.ClassUnavailable, postrider.ScopeDestination},
		{status.Error(codes.ResourceExhausted, "x"), postrider.ClassUnavailable, postrider.ScopeDestination},
		{status.Error(codes.InvalidArgument, "x"), postrider.ClassPermanent, postrider.ScopeMessage},
		{status.Error(codes.DeadlineExceeded, "x"), postrider.ClassUnknown, postrider.ScopeUnknown},
		{status.Error(codes.Internal, "x"), postrider.ClassUnknown, postrider.ScopeUnknown},
		{errors.New("x"), postrider.ClassUnknown, postrider.ScopeUnknown},
	} {
		got := meaning(t.Context(), "projects/p/topics/t", c.err)
		if postrider.ClassOf(got) != c.class || postrider.ScopeOf(got) != c.scope {
			t.Errorf("%v: got %v, %v", c.err, postrider.ClassOf(got), postrider.ScopeOf(got))
		}
	}
}

// TestCredentials checks that wrong credentials are reported as such, are not attributed to a
// message, and that the next call uses corrected ones.
func TestCredentials(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key.json")
	p, err := NewPublisher(Config{URL: "pubsub://test-project", Endpoint: theServer.address, CredentialsFile: file})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for content, want := range map[string]string{"": "no such file", "{}": "has no type", `{"type": "service_account"}`: "pubsub"} {
		if content != "" {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			_ = os.Remove(file)
		}
		errs := p.Publish(t.Context(), []postrider.Message{message("orders", "k", "x")})
		if len(errs) != 1 || postrider.ScopeOf(errs[0]) != postrider.ScopeDestination || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%q: got %v, want %q", content, errs, want)
		}
	}
}

func TestEmulator(t *testing.T) {
	t.Setenv(emulatorHost, theServer.address)
	d, err := broker.Lookup("pubsub")
	if err != nil {
		t.Fatal(err)
	}
	const topic = "emulated"
	if err := d.Create(t.Context(), &broker.Settings{URL: "pubsub://test-project"}, topic); err != nil {
		t.Fatal(err)
	}
	p, err := NewPublisher(Config{URL: "pubsub://test-project"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if errs := p.Publish(t.Context(), []postrider.Message{message(topic, "k", "x")}); errs != nil {
		t.Fatal(errs)
	}
	in, err := p.Inspect(t.Context(), []string{topic})
	if err != nil || len(in.Warnings) != 1 || !strings.Contains(in.Warnings[0].Danger, emulatorHost) {
		t.Errorf("got %+v and %v", in, err)
	}
	_, err = NewPublisher(Config{URL: "pubsub://test-project", Endpoint: "localhost:1"})
	expectAll(t, err, emulatorHost)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	topic, bare := createTopic(t, nil), fmt.Sprintf("bare-%d", lastName.Add(1))
	service := &theServer.service.GServer
	if _, err := service.CreateTopic(t.Context(), &pubsubpb.Topic{Name: "projects/test-project/topics/" + bare}); err != nil {
		t.Fatal(err)
	}
	loose := topic + "-loose"
	if _, err := service.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		Name: "projects/test-project/subscriptions/" + loose, Topic: "projects/test-project/topics/" + topic, AckDeadlineSeconds: 10,
		MessageRetentionDuration: durationpb.New(time.Hour), Filter: `attributes:x`,
	}); err != nil {
		t.Fatal(err)
	}
	in, err := open(t, nil).Inspect(t.Context(), []string{topic, bare, "no-such-topic", "a b"})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(in)
	for _, want := range []string{
		"stored the message", "{subscriptions (" + topic + ") 2}", "{enableMessageOrdering (" + topic + ") true}",
		"subscription " + loose + " does not keep the order", loose + " drops messages that are not received within 1h0m0s",
		"topic " + bare + " has no subscription", "--topic=" + bare + " --enable-message-ordering",
		"topic no-such-topic does not exist Run: gcloud pubsub topics create no-such-topic --project=test-project", `"a b" is not`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if len(in.Warnings) != 5 {
		t.Errorf("got %d warnings: %v", len(in.Warnings), in.Warnings)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := open(t, func(c *Config) { c.Endpoint = "127.0.0.1:1" }).Inspect(ctx, []string{topic}); err == nil {
		t.Error("nobody answers, and that is no error")
	}
}

func TestBare(t *testing.T) {
	t.Parallel()
	for _, unordered := range []string{"false", "true"} {
		values := map[string]string{"unordered": unordered}
		d, s := settings(theServer.address, values)
		load := broker.Load{Name: createTopic(t, values), Messages: 1000, Size: 10, Keys: 7}
		if err := d.Bare(t.Context(), s, load); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Bare(ctx, s, load); err == nil {
			t.Error("it was cancelled, and that is no error")
		}
	}
}

// consume handles messages of a subscription until the handler calls stop.
func consume(t *testing.T, cfg Config, handle func(m postrider.Message, stop func()) error) {
	t.Helper()
	deadline := cfg.AckDeadline
	if cfg.AckDeadline < 10*time.Second { // the test server accepts shorter deadlines than the service
		cfg.AckDeadline = 0
	}
	c, err := NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if deadline > 0 {
		c.cfg.AckDeadline = deadline
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.Consume(ctx, func(_ context.Context, m postrider.Message) error { return handle(m, cancel) }); err != nil {
		t.Error(err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("not all has come")
	}
}

func local(name string) Config {
	return Config{URL: "pubsub://test-project", Endpoint: theServer.address, Insecure: true, Name: name}
}

// TestDeadlineIsExtended handles a message for longer than its deadline: it must not be
// redelivered.
func TestDeadlineIsExtended(t *testing.T) {
	t.Parallel()
	topic := createTopic(t, nil)
	if errs := open(t, nil).Publish(t.Context(), []postrider.Message{message(topic, "k", "1"), message(topic, "k", "2")}); errs != nil {
		t.Fatal(errs)
	}
	cfg := local(topic)
	cfg.AckDeadline = time.Second
	var got []string
	consume(t, cfg, func(m postrider.Message, stop func()) error {
		got = append(got, string(m.Payload))
		if len(got) == 1 {
			time.Sleep(1800 * time.Millisecond)
			return nil
		}
		stop()
		return nil
	})
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %q", got)
	}
}

// TestUndecodable receives a message that claims to be a CloudEvent but is invalid.
func TestUndecodable(t *testing.T) {
	t.Parallel()
	topic := createTopic(t, nil)
	theServer.service.PublishOrdered("projects/test-project/topics/"+topic, []byte("odd"), map[string]string{"ce-specversion": "9"}, "k")
	consume(t, local(topic), func(m postrider.Message, stop func()) error {
		if string(m.Payload) != "odd" || m.Headers["ce-specversion"] != "9" || m.OrderKey() != "k" {
			t.Errorf("got %+v", m)
		}
		stop()
		return nil
	})
}

// TestMissingSubscription waits for a subscription that is created later; the log must tell how to
// create it.
func TestMissingSubscription(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("late-%d", lastName.Add(1))
	d, s := settings(theServer.address, nil)
	cfg := local(name)
	var said sync.Once
	cfg.Logger = slog.New(watch{slog.DiscardHandler, func(r slog.Record) {
		said.Do(func() {
			text := r.Message
			r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
			if !strings.Contains(text, "gcloud pubsub subscriptions create "+name+" --project=test-project --topic=TOPIC") {
				t.Errorf("the log says %s", text)
			}
			if err := d.Create(t.Context(), s, name); err != nil {
				t.Error(err)
			}
			theServer.service.Publish("projects/test-project/topics/"+name, []byte("x"), nil)
		})
	}})
	consume(t, cfg, func(_ postrider.Message, stop func()) error { stop(); return nil })
}

type watch struct {
	slog.Handler
	saw func(slog.Record)
}

func (w watch) Enabled(context.Context, slog.Level) bool { return true }
func (w watch) Handle(_ context.Context, r slog.Record) error {
	w.saw(r)
	return nil
}
func (w watch) WithAttrs([]slog.Attr) slog.Handler { return w }

// TestPlainServer consumes from Google's unmodified test server, across the end of its streams.
func TestPlainServer(t *testing.T) {
	t.Parallel()
	server := newFake()
	defer server.grpc.Stop()
	server.service.SetStreamTimeout(300 * time.Millisecond)
	d, s := settings(server.service.Addr, nil)
	if err := d.Create(t.Context(), s, "orders"); err != nil {
		t.Fatal(err)
	}
	p := open(t, func(c *Config) { c.Endpoint = server.service.Addr })
	var msgs []postrider.Message
	for i := range 60 {
		msgs = append(msgs, message("orders", fmt.Sprint(i%3), fmt.Sprint(i)))
	}
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	cfg := local("orders")
	cfg.Endpoint, cfg.AckDeadline = server.service.Addr, time.Second
	var mu sync.Mutex
	last := make(map[string]int)
	seen := make(map[int]bool)
	consume(t, cfg, func(m postrider.Message, stop func()) error {
		var n int
		if _, err := fmt.Sscan(string(m.Payload), &n); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if !seen[n] && n < last[m.OrderKey()] {
			t.Errorf("key %s: %d came after %d", m.OrderKey(), n, last[m.OrderKey()])
		}
		seen[n], last[m.OrderKey()] = true, max(n, last[m.OrderKey()])
		if len(seen) == len(msgs) {
			stop()
		}
		return nil
	})
}

// several delivers many messages of a key together, as the service does and Google's test server
// does not.
type several struct {
	pubsubpb.UnimplementedSubscriberServer
	acked chan string
}

func (s several) StreamingPull(stream pubsubpb.Subscriber_StreamingPullServer) error {
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	if r.ClientId == "" || r.StreamAckDeadlineSeconds != 30 || r.MaxOutstandingMessages != 1064 || r.MaxOutstandingBytes == 0 {
		return status.Errorf(codes.InvalidArgument, "%v", r)
	}
	var out pubsubpb.StreamingPullResponse
	for i := range 50 {
		out.ReceivedMessages = append(out.ReceivedMessages, &pubsubpb.ReceivedMessage{
			AckId: fmt.Sprint(i), Message: &pubsubpb.PubsubMessage{Data: []byte(fmt.Sprint(i)), OrderingKey: "k", MessageId: fmt.Sprint(i)},
		})
	}
	if err := stream.Send(&out); err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

func (s several) Acknowledge(_ context.Context, r *pubsubpb.AcknowledgeRequest) (*emptypb.Empty, error) {
	for _, id := range r.AckIds {
		s.acked <- id
	}
	return &emptypb.Empty{}, nil
}

func TestSeveralOfAKey(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := several{acked: make(chan string, 100)}
	server := grpc.NewServer()
	pubsubpb.RegisterSubscriberServer(server, service)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	cfg := local("orders")
	cfg.Endpoint = listener.Addr().String()
	var got []string
	failed := false
	consume(t, cfg, func(m postrider.Message, stop func()) error {
		if string(m.Payload) == "7" && !failed {
			failed = true
			return errors.New("once")
		}
		got = append(got, string(m.Payload))
		if len(got) == 50 {
			stop()
		}
		return nil
	})
	for i, text := range got {
		if text != fmt.Sprint(i) {
			t.Errorf("message %d is %s", i, text)
		}
	}
	if len(service.acked) != 50 {
		t.Fatalf("%d of 50 were acknowledged", len(service.acked))
	}
	for i := range 50 {
		if id := <-service.acked; id != fmt.Sprint(i) {
			t.Errorf("acknowledgement %d is of %s", i, id)
		}
	}
}
