package kafka

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/internal/stock"
)

// Holds returns the indexes of messages that their topics do not hold. It reads everything that the
// topics have stored since the given time. It leaves out messages that a topic may have dropped
// because of its retention, and refuses a compacted topic with [postrider.ErrUnsupported]. It
// implements Holder of package reconcile.
func (p *Publisher) Holds(ctx context.Context, since time.Time, msgs []postrider.Message) (missing []int, err error) {
	return stock.Missing(p.coder, since, msgs, func(topic string, since time.Time) (*stock.Stock, error) {
		found := stock.New()
		if err := p.stored(ctx, topic, since, found.Add, found.Dropped); err != nil {
			return nil, fmt.Errorf("kafka: topic %s: %w", topic, err)
		}
		return found, nil
	})
}

// span is the range of a partition to read.
type span struct {
	from, to int64
	cut      bool // records before from, which may belong to it, were dropped
}

// stored calls found with the ID of each message that a topic has stored since a time, and dropped
// if the topic may have dropped messages that were stored before another time. It waits for
// transactions that are open.
func (p *Publisher) stored(ctx context.Context, topic string, since time.Time, found func(id string), dropped func(before time.Time)) error {
	spans, err := p.spans(ctx, topic, since)
	if err != nil {
		return err
	}
	offsets := make(map[int32]kgo.Offset)
	for partition, s := range spans {
		if s.from < s.to {
			offsets[partition] = kgo.NewOffset().At(s.from)
		} else if s.cut { // no record is left that dates the cut
			dropped(time.Now())
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	client, err := p.cfg.client(p.cfg.dial, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}), kgo.FetchMaxBytes(8<<20),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords()) // the last record before the end may be that of a transaction's end
	if err != nil {
		return err
	}
	defer client.Close()
	for len(offsets) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("%d partitions were not readable to their end in time; if that does not pass, a transaction is open there: "+
				"see kafka-transactions.sh find-hanging: %w", len(offsets), err)
		}
		for _, e := range fetches.Errors() {
			return e.Err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			s := spans[r.Partition]
			if s.cut {
				dropped(r.Timestamp)
				s.cut = false
				spans[r.Partition] = s
			}
			if !r.Attrs.IsControl() {
				packet := packetOf(r)
				if id, ok := p.coder.Sent(&packet); ok {
					found(id)
				}
			}
			if r.Offset+1 >= s.to {
				delete(offsets, r.Partition)
			}
		})
	}
	return nil
}

// spans determines which range of each partition to read.
func (p *Publisher) spans(ctx context.Context, topic string, since time.Time) (map[int32]span, error) {
	admin, err := newAdmin(p.cfg)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	config, err := configs.On(topic, nil)
	if err != nil {
		return nil, err
	}
	if config.Err != nil {
		return nil, config.Err
	}
	for _, c := range config.Configs {
		if c.Key == "cleanup.policy" && strings.Contains(c.MaybeValue(), "compact") {
			return nil, fmt.Errorf("%w: it is compacted, so it is unknown which messages it has had", postrider.ErrUnsupported)
		}
	}
	starts, err := listed(admin.ListStartOffsets(ctx, topic))
	if err != nil {
		return nil, err
	}
	ends, err := listed(admin.ListEndOffsets(ctx, topic))
	if err != nil {
		return nil, err
	}
	afters, err := listed(admin.ListOffsetsAfterMilli(ctx, since.UnixMilli(), topic))
	if err != nil {
		return nil, err
	}
	spans := make(map[int32]span)
	for partition, end := range ends[topic] {
		first, from := starts[topic][partition].Offset, afters[topic][partition].Offset
		spans[partition] = span{from: max(first, from), to: end.Offset, cut: first > 0 && from <= first}
	}
	return spans, nil
}

func listed(offsets kadm.ListedOffsets, err error) (kadm.ListedOffsets, error) {
	if err == nil {
		err = offsets.Error()
	}
	return offsets, err
}
