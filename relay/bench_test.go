package relay_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// BenchmarkRelay publishes b.N messages of 256 bytes from the memory store to a publisher that does
// nothing. It measures the relay and the copies of the store.
func BenchmarkRelay(b *testing.B) {
	for _, bench := range []struct {
		name string
		pub  func(*discard.Publisher) postrider.Publisher
	}{
		{"order kept", func(p *discard.Publisher) postrider.Publisher { return p }},
		{"waves", func(p *discard.Publisher) postrider.Publisher { return unordered{p} }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			store := memory.Open(memory.Config{})
			outbox := memory.Outbox[any](store)
			payload := make([]byte, 256)
			msgs := make([]postrider.Message, 0, 1000)
			for i := range b.N {
				msgs = append(msgs, postrider.Event("happened", postrider.Aggregate{Type: "thing", ID: strconv.Itoa(i % 1000)}, payload))
				if len(msgs) == cap(msgs) || i == b.N-1 {
					if err := outbox.Enqueue(b.Context(), nil, msgs...); err != nil {
						b.Fatal(err)
					}
					msgs = msgs[:0]
				}
			}
			sink := discard.New()
			r, err := relay.New(store, bench.pub(sink), relay.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error)
			b.ReportAllocs()
			b.ResetTimer()
			go func() { done <- r.Run(ctx) }()
			for sink.Count() < int64(b.N) {
				time.Sleep(100 * time.Microsecond)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkWorkers measures the relay alone: the store returns the same pages again and again.
func BenchmarkWorkers(b *testing.B) {
	for _, bench := range []struct {
		name string
		page int
	}{{"pages of 500", 500}, {"pages of 6", 6}} {
		for _, waves := range []bool{false, true} {
			name := bench.name
			if waves {
				name += " in waves"
			}
			b.Run(name, func(b *testing.B) {
				page := batch(0, bench.page)
				left := b.N
				store := &script{read: func(_ context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
					own := page
					own.Messages = own.Messages[:min(left, len(own.Messages), want[0].Limit)]
					left -= len(own.Messages)
					own.More = left > 0
					return []feeds.Batch{own}, nil
				}}
				sink := discard.New()
				var pub postrider.Publisher = sink
				if waves {
					pub = unordered{sink}
				}
				r, err := relay.New(store, pub, relay.Config{Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan error)
				b.ReportAllocs()
				b.ResetTimer()
				go func() { done <- r.Run(ctx) }()
				for sink.Count() < int64(b.N) {
					time.Sleep(100 * time.Microsecond)
				}
				b.StopTimer()
				cancel()
				if err := <-done; err != nil {
					b.Error(err)
				}
			})
		}
	}
}

// unordered hides that a publisher keeps order.
type unordered struct{ postrider.Publisher }
