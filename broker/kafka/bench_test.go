package kafka

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// BenchmarkBare measures the client alone, and BenchmarkPublisher eight callers with 500 messages
// each, as in a relay.
func BenchmarkBare(b *testing.B) {
	for _, keys := range []int{10_000, 1} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			name := newTopic(b, nil)
			bare := driver(b).Bare
			load := broker.Load{Name: name, Messages: 1000, Size: 256, Keys: keys}
			if err := bare(b.Context(), settings(server(b), nil), load); err != nil { // the first messages of a new topic are slow
				b.Fatal(err)
			}
			b.ResetTimer()
			load.Messages = b.N
			if err := bare(b.Context(), settings(server(b), nil), load); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

func BenchmarkPublisher(b *testing.B) {
	for _, format := range []string{"cloudevents", "raw"} {
		for _, keys := range []int{10_000, 1} {
			b.Run(fmt.Sprintf("%s/keys=%d", format, keys), func(b *testing.B) {
				benchmarkPublisher(b, keys, map[string]string{"format": format})
			})
		}
	}
	b.Run("once/keys=10000", func(b *testing.B) { benchmarkPublisher(b, 10_000, map[string]string{"once": "true"}) })
}

func benchmarkPublisher(b *testing.B, keys int, values map[string]string) {
	const callers, batch = 8, 500
	name := newTopic(b, nil)
	p, err := driver(b).Open(settings(server(b), values))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	batches := make([][]postrider.Message, callers)
	for c := range batches {
		for n := range batch {
			m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: strconv.Itoa((c*batch + n) % keys)}, make([]byte, 256))
			m.Topic = name
			batches[c] = append(batches[c], m)
		}
		p.Publish(senderOf(ctx, c), batches[c][:1])
	}
	b.ReportAllocs()
	b.ResetTimer()
	var run sync.WaitGroup
	for c := range callers {
		run.Go(func() {
			for left := b.N / callers; left > 0; left -= batch {
				if errs := p.Publish(senderOf(ctx, c), batches[c][:min(batch, left)]); errs != nil {
					b.Error(errs[0])
				}
			}
		})
	}
	run.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func senderOf(ctx context.Context, caller int) context.Context {
	return broker.WithSender(ctx, broker.Sender{Name: fmt.Sprintf("bench/%d", caller), Term: 1})
}
