package kafka

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/reconcile"
)

var _ reconcile.Holder = (*Publisher)(nil)

// TestHolds checks that exactly the missing messages are reported: neither those stored under
// another ID, nor those that retention has dropped.
func TestHolds(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"cloudevents", "cloudevents-structured", "raw"} {
		t.Run(format, func(t *testing.T) {
			topic := newTopic(t, map[string]string{"partitions": "3"})
			opened, err := driver(t).Open(settings(server(t), map[string]string{"format": format}))
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			pub, ok := opened.(*Publisher)
			if !ok {
				t.Fatalf("%T", opened)
			}
			start := time.Now()
			msgs := make([]postrider.Message, 2500)
			for i := range msgs {
				msgs[i] = postrider.Event("t", postrider.Aggregate{Type: "a", ID: string(rune('a' + i%20))}, i)
				msgs[i].Topic = topic
				if i%2 == 0 {
					msgs[i].WireID = "outbox-" + msgs[i].ID.String()
				}
			}
			missing, err := pub.Holds(t.Context(), start, msgs[:3])
			for err != nil && time.Since(start) < 10*time.Second { // a new topic is not visible immediately
				missing, err = pub.Holds(t.Context(), start, msgs[:3])
			}
			if err != nil || !slices.Equal(missing, []int{0, 1, 2}) {
				t.Fatalf("an empty topic: missing %v, %v", missing, err)
			}
			var sent []postrider.Message
			want := []int{7, 8, 2499}
			for i, m := range msgs {
				if !slices.Contains(want, i) {
					sent = append(sent, m)
				}
			}
			if errs := pub.Publish(t.Context(), sent); errs != nil {
				t.Fatal(errors.Join(errs...))
			}
			if missing, err := pub.Holds(t.Context(), start, msgs); err != nil || !slices.Equal(missing, want) {
				t.Fatalf("missing %v, %v; want %v", missing, err, want)
			}
			// Dropped messages are not missing.
			a := admin(t, pub)
			var dropped kadm.Offsets
			for partition := range int32(3) {
				dropped.AddOffset(topic, partition, 100, -1)
			}
			if _, err := a.DeleteRecords(t.Context(), dropped); err != nil {
				t.Fatal(err)
			}
			if missing, err := pub.Holds(t.Context(), start, msgs); err != nil || len(missing) != 0 {
				t.Errorf("after records were dropped: missing %v, %v", missing, err)
			}
		})
	}
	opened, err := driver(t).Open(settings(server(t), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	m := postrider.Event("t", postrider.Aggregate{Type: "a", ID: "1"}, 1)
	m.Topic = "no-such-topic-" + m.ID.String()
	if _, err := opened.(*Publisher).Holds(t.Context(), time.Now(), []postrider.Message{m}); err == nil {
		t.Error("no topic: no error")
	}
}
