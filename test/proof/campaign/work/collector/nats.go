package collector

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/test/proof/campaign/work"
)

// readNATS reads a stream by sequence number.
func readNATS(address string, take take) func(context.Context) error {
	next := uint64(1)
	return func(ctx context.Context) error {
		conn, err := nats.Connect(address, nats.MaxReconnects(-1), nats.ReconnectWait(300*time.Millisecond), nats.PingInterval(5*time.Second))
		if err != nil {
			return err
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			return err
		}
		consumer, err := js.OrderedConsumer(ctx, work.Stream, jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next,
		})
		if err != nil {
			return err
		}
		messages, err := consumer.Messages()
		if err != nil {
			return err
		}
		defer messages.Stop()
		for {
			m, err := messages.Next(jetstream.NextContext(ctx))
			if err != nil {
				return err
			}
			meta, err := m.Metadata()
			if err != nil {
				return err
			}
			if meta.Sequence.Stream < next {
				continue
			}
			e := entry{offset: int64(meta.Sequence.Stream), id: m.Headers().Get("Nats-Msg-Id"), payload: m.Data(), at: meta.Timestamp}
			for name, values := range m.Headers() {
				e.headers.Add(name, values[0])
			}
			take(e)
			next = meta.Sequence.Stream + 1
		}
	}
}
