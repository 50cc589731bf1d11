package pubsub

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/postrider/postrider/broker"
)

// addressEnv tells a consumer in a separate process the server's address.
const addressEnv = "POSTRIDER_PUBSUB_SERVER"

// fake is Google's in-memory server behind our own listener. Like the service, it survives a
// restart, refuses messages over the limits, and has forbidden topics.
type fake struct {
	service *pstest.Server
	address string

	mu        sync.Mutex
	grpc      *grpc.Server
	refusals  map[string]error // errors of Publish, by topic
	publishes atomic.Int64
}

// theServer is used by all tests except the suites, which restart their own.
var theServer, suiteServer, unorderedServer *fake

var servers []*fake

func TestMain(m *testing.M) {
	if os.Getenv(addressEnv) == "" {
		theServer, suiteServer, unorderedServer = newFake(), newFake(), newFake()
		servers = []*fake{theServer, suiteServer, unorderedServer}
		_ = os.Setenv(addressEnv, suiteServer.address)
	}
	os.Exit(m.Run())
}

func newFake() *fake {
	f := &fake{service: pstest.NewServer(), address: "127.0.0.1:0", refusals: make(map[string]error)}
	f.start()
	return f
}

func (f *fake) start() {
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		panic(err)
	}
	f.address = listener.Addr().String()
	f.grpc = grpc.NewServer(grpc.MaxRecvMsgSize(2*maxRequest), grpc.UnaryInterceptor(f.intercept))
	pubsubpb.RegisterPublisherServer(f.grpc, &f.service.GServer)
	pubsubpb.RegisterSubscriberServer(f.grpc, subscriber{&f.service.GServer})
	go func(s *grpc.Server) { _ = s.Serve(listener) }(f.grpc)
}

// restart breaks all connections. Confirmed messages are kept, as by the service.
func (f *fake) restart() {
	f.grpc.Stop()
	f.start()
}

// refuse makes Publish to a topic fail with err, or succeed if err is nil.
func (f *fake) refuse(topic string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals[topic] = err
}

func (f *fake) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if r, ok := request.(*pubsubpb.PublishRequest); ok {
		f.publishes.Add(1)
		f.mu.Lock()
		err := f.refusals[r.Topic]
		f.mu.Unlock()
		if err == nil {
			err = limits(r)
		}
		if err != nil {
			return nil, err
		}
	}
	return next(ctx, request)
}

// limits enforces the limits of the service.
func limits(r *pubsubpb.PublishRequest) error {
	wrong := func(format string, args ...any) error { return status.Errorf(codes.InvalidArgument, format, args...) }
	if len(r.Messages) > 1000 || proto.Size(r) > 10_000_000 {
		return wrong("%d messages, %d bytes", len(r.Messages), proto.Size(r))
	}
	for _, m := range r.Messages {
		if m.OrderingKey != r.Messages[0].OrderingKey {
			return wrong("ordering keys %q and %q in a request", r.Messages[0].OrderingKey, m.OrderingKey)
		}
		if len(m.Data) == 0 && len(m.Attributes) == 0 || len(m.OrderingKey) > 1024 || len(m.Attributes) > 100 {
			return wrong("empty message, long key or many attributes")
		}
		for name, value := range m.Attributes {
			if len(name) > 256 || len(value) > 1024 {
				return wrong("attribute %s", name)
			}
		}
		if m.Attributes["spoilt"] != "" { // simulates a violation of the topic's schema
			return wrong("schema")
		}
	}
	return nil
}

// subscriber streams messages of Google's server. The server itself polls every 10 ms and sends
// about one message per stream, which is too slow for the suite. TestPlainServer uses it
// unmodified.
type subscriber struct{ *pstest.GServer }

func (s subscriber) StreamingPull(stream pubsubpb.Subscriber_StreamingPullServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	pull := &pubsubpb.PullRequest{Subscription: first.Subscription, MaxMessages: int32(first.MaxOutstandingMessages)}
	pull.ProtoReflect().Set(pull.ProtoReflect().Descriptor().Fields().ByName("return_immediately"), protoreflect.ValueOfBool(true)) // deprecated
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for err := error(nil); err == nil; {
			_, err = stream.Recv()
		}
	}()
	for {
		answer, err := s.Pull(stream.Context(), pull)
		if err != nil {
			return err
		}
		deadline := &pubsubpb.ModifyAckDeadlineRequest{Subscription: first.Subscription, AckDeadlineSeconds: first.StreamAckDeadlineSeconds}
		for _, m := range answer.ReceivedMessages {
			deadline.AckIds = append(deadline.AckIds, m.AckId)
		}
		if len(deadline.AckIds) > 0 {
			if _, err := s.ModifyAckDeadline(stream.Context(), deadline); err != nil {
				return err
			}
			if err := stream.Send(&pubsubpb.StreamingPullResponse{ReceivedMessages: answer.ReceivedMessages}); err != nil {
				return err
			}
		}
		select {
		case <-ended:
			return nil
		case <-time.After(3 * time.Millisecond):
		}
	}
}

// settings returns the driver and the settings for a server.
func settings(address string, values map[string]string) (broker.Driver, *broker.Settings) {
	d, err := broker.Lookup("pubsub")
	if err != nil {
		panic(err)
	}
	all := map[string]string{"endpoint": address, "insecure": "true"}
	maps.Copy(all, values)
	return d, &broker.Settings{URL: "pubsub://test-project", Values: all}
}

var lastName atomic.Int64

func createTopic(t *testing.T, values map[string]string) string {
	t.Helper()
	return createTopicAt(t, theServer.address, values)
}

func createTopicAt(t *testing.T, address string, values map[string]string) string {
	t.Helper()
	name := fmt.Sprintf("test-%d", lastName.Add(1))
	createNamed(t, address, values, name)
	return name
}

func createNamed(t *testing.T, address string, values map[string]string, name string) {
	t.Helper()
	d, s := settings(address, values)
	for range 2 { // an existing one is left unchanged
		if err := d.Create(t.Context(), s, name); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // the server polls each subscription a hundred times a second
		for _, server := range servers {
			_, _ = server.service.GServer.DeleteSubscription(context.Background(),
				&pubsubpb.DeleteSubscriptionRequest{Subscription: "projects/test-project/subscriptions/" + name})
		}
	})
}
