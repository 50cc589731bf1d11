package collector

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// readKafka reads all partitions. The client reconnects by itself.
func readKafka(address string, take take) func(context.Context) error {
	next := map[int32]int64{} // partition → offset of the next record
	return func(ctx context.Context) error {
		client, err := work.KafkaClient(address, kgo.ConsumeTopics(world.Kafka), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			return err
		}
		defer client.Close()
		for ctx.Err() == nil {
			for r := range client.PollFetches(ctx).RecordsAll() {
				if r.Offset < next[r.Partition] {
					continue
				}
				e := entry{partition: int(r.Partition), offset: r.Offset, payload: r.Value, at: r.Timestamp}
				for _, h := range r.Headers {
					if strings.EqualFold(h.Key, "ce_id") {
						e.id = string(h.Value)
					}
					e.headers.Add(h.Key, string(h.Value))
				}
				take(e)
				next[r.Partition] = r.Offset + 1
			}
		}
		return ctx.Err()
	}
}
