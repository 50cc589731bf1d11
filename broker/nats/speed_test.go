package nats_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

// BenchmarkPublish compares eight senders of 500 messages at a time with the client alone, and with
// one sender of a hot key: one message at a time, or an atomic batch.
func BenchmarkPublish(b *testing.B) {
	url := need.Env(b, "POSTRIDER_TEST_NATS", "nats")
	b.Run("bare", func(b *testing.B) {
		driver, err := broker.Lookup("nats")
		if err != nil {
			b.Fatal(err)
		}
		name := create(b, url, false, 1)
		if err := driver.Bare(b.Context(), &broker.Settings{URL: url}, broker.Load{Name: name, Messages: b.N, Size: 256, Keys: 1000}); err != nil {
			b.Fatal(err)
		}
	})
	for _, c := range []struct {
		name    string
		atomic  bool
		senders int
		batch   int
	}{{"spread", false, 8, 500}, {"spread atomic", true, 8, 500}, {"hot", false, 1, 1}, {"hot atomic", true, 1, 500}} {
		b.Run(c.name, func(b *testing.B) {
			name := create(b, url, c.atomic, 1)
			p := publisher(b, nats.Config{URL: url, Stream: streamOf(name, c.atomic), Atomic: c.atomic})
			defer p.Close()
			b.ReportAllocs()
			b.ResetTimer()
			var run sync.WaitGroup
			for sender := range c.senders {
				run.Go(func() {
					msgs := make([]postrider.Message, c.batch)
					for left := b.N / c.senders; left > 0; left -= len(msgs) {
						msgs = msgs[:min(left, len(msgs))]
						for i := range msgs {
							msgs[i] = postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: fmt.Sprint(sender)}, payload)
							msgs[i].Topic = name
						}
						if errs := p.Publish(b.Context(), msgs); errs != nil {
							b.Error(errs[0])
							return
						}
					}
				})
			}
			run.Wait()
		})
	}
}

var payload = make([]byte, 256)
