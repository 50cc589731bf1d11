package nats_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/reconcile"
)

var _ reconcile.Holder = (*nats.Publisher)(nil)

// TestHolds checks that exactly the missing messages are reported: neither those stored under
// another ID, nor those that the stream has dropped.
func TestHolds(t *testing.T) {
	t.Parallel()
	server := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	for _, format := range []string{"cloudevents", "cloudevents-structured", "raw"} {
		t.Run(format, func(t *testing.T) {
			subject := create(t, server, false, 1)
			pub := publisher(t, nats.Config{URL: server, Format: codec.Format(format)})
			start := time.Now()
			msgs := make([]postrider.Message, 2500)
			for i := range msgs {
				msgs[i] = postrider.Event("t", postrider.Aggregate{Type: "a", ID: "1"}, i)
				msgs[i].Topic = subject
				if i%2 == 0 {
					msgs[i].WireID = "outbox-" + msgs[i].ID.String()
				}
			}
			if missing, err := pub.Holds(t.Context(), start, msgs[:3]); err != nil || !slices.Equal(missing, []int{0, 1, 2}) {
				t.Fatalf("an empty stream: missing %v, %v", missing, err)
			}
			var sent []postrider.Message
			want := []int{7, 8, 2499}
			for i, m := range msgs {
				if !slices.Contains(want, i) {
					sent = append(sent, m)
				}
			}
			for part := range slices.Chunk(sent, 500) {
				if errs := pub.Publish(t.Context(), part); errs != nil {
					t.Fatal(errors.Join(errs...))
				}
			}
			if missing, err := pub.Holds(t.Context(), start, msgs); err != nil || !slices.Equal(missing, want) {
				t.Fatalf("missing %v, %v; want %v", missing, err, want)
			}
			// Dropped messages are not missing.
			js := admin(t, server)
			name, err := js.StreamNameBySubject(t.Context(), subject)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSequence(100)); err != nil {
				t.Fatal(err)
			}
			if missing, err := pub.Holds(t.Context(), start, msgs); err != nil || len(missing) != 0 {
				t.Errorf("after a purge: missing %v, %v", missing, err)
			}
			if err := stream.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if missing, err := pub.Holds(t.Context(), start, msgs); err != nil || len(missing) != 0 {
				t.Errorf("after a purge of all: missing %v, %v", missing, err)
			}
		})
	}
	pub := publisher(t, nats.Config{URL: server})
	work := "holds-" + postrider.NewID().String()
	if _, err := admin(t, server).CreateStream(t.Context(), jetstream.StreamConfig{
		Name: work, Subjects: []string{work + ".>"}, Retention: jetstream.WorkQueuePolicy}); err != nil {
		t.Fatal(err)
	}
	removeAfter(t, server, work+".x")
	m := postrider.Event("t", postrider.Aggregate{Type: "a", ID: "1"}, 1)
	m.Topic = work + ".x"
	if _, err := pub.Holds(t.Context(), time.Now(), []postrider.Message{m}); !errors.Is(err, postrider.ErrUnsupported) {
		t.Errorf("a work queue: %v", err)
	}
	m.Topic = "no.such." + strings.ReplaceAll(work, "-", "")
	if _, err := pub.Holds(t.Context(), time.Now(), []postrider.Message{m}); err == nil {
		t.Error("no stream: no error")
	}
}
