package shard

import (
	"math"
	"strconv"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// BenchmarkWindow measures the cost per message of choosing and confirming, with 4000 messages in
// the window.
func BenchmarkWindow(b *testing.B) {
	for _, bench := range []struct {
		name       string
		keepsOrder bool
		keys       int
		refused    bool // the first message is rejected permanently
	}{
		{"order kept", true, 10_000, false},
		{"order kept, one refused", true, 10_000, true},
		{"10000 keys", false, 10_000, false},
		{"1000 keys", false, 1000, false},
		{"hot key", false, 1, false},
		{"hot key, another refused", false, 1, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			const page = 500
			msgs := make([]postrider.Message, 40_000)
			for i := range msgs {
				msgs[i].Key = "key-" + strconv.Itoa(i%bench.keys)
			}
			var batches []*feeds.Batch
			for i := 0; i < len(msgs); i += page {
				batches = append(batches, &feeds.Batch{Messages: msgs[i : i+page]})
			}
			some := choice{messages: page, bytes: math.MaxInt}
			open := func() window {
				w := newWindow(bench.keepsOrder)
				if bench.refused {
					w.add(&feeds.Batch{Messages: []postrider.Message{{Key: "refused"}}}, 1)
					w.pick(some)
					w.record([]error{errTest})
					w.beginDefer(0)
				}
				return w
			}
			w := open()
			next, calls, room := 0, 0, 4000
			b.ReportAllocs()
			b.ResetTimer()
			for sent := 0; sent < b.N; calls++ {
				for ; room >= page; room -= page {
					w.add(batches[next%len(batches)], 1)
					next++
				}
				call := w.pick(some)
				if len(call) == 0 { // only with a rejected message: the window has filled up behind it
					b.StopTimer()
					w, room = open(), 4000
					b.StartTimer()
					continue
				}
				n, _ := w.record(nil)
				sent += n
				n, _, _ = w.advance()
				room += n
			}
			b.ReportMetric(float64(b.N)/float64(calls), "msgs/call")
		})
	}
}
