package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/wire"
)

// Consumer is a [postrider.Consumer] that is a member of a consumer group.
type Consumer struct {
	cfg   Config
	codec *wire.Codec
}

// NewConsumer returns a consumer. It does not connect; errors are about the configuration, all of them at once.
func NewConsumer(cfg Config) (*Consumer, error) {
	var missing error
	if cfg.Name == "" || cfg.Group == "" {
		missing = errors.New("a consumer needs Name, that of a topic, and Group")
	}
	codec, err := cfg.prepare(missing)
	if err != nil {
		return nil, err
	}
	return &Consumer{cfg, codec}, nil
}

// Close does nothing: each Consume has given up what it used.
func (c *Consumer) Close() error { return nil }

// Consume implements [postrider.Consumer].
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) (err error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ours := &partitions{topic: c.cfg.Name, ctx: ctx, all: make(map[int32]*partition)}
	ours.client, err = c.cfg.client(c.cfg.dial,
		kgo.WithContext(life),
		kgo.ConsumerGroup(c.cfg.Group),
		kgo.ConsumeTopics(c.cfg.Name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(time.Second),
		kgo.BlockRebalanceOnPoll(),
		// A member that the brokers have forgotten, as after a crash of theirs, must not block the others for long.
		kgo.SessionTimeout(15*time.Second),
		kgo.RebalanceTimeout(30*time.Second),
		kgo.FetchMaxBytes(8<<20),
		kgo.OnPartitionsAssigned(ours.assigned),
		kgo.OnPartitionsRevoked(ours.revoked),
		kgo.OnPartitionsLost(ours.lost),
		kgo.KeepRetryableFetchErrors(),
	)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer ours.client.Close()
	in := intake.Open(ctx, handle, intake.Config{Limit: c.cfg.InFlight, Logger: c.cfg.Logger})
	c.receive(ctx, ours, in)
	in.Wait()
	leave, cancel := context.WithTimeout(life, 5*time.Second)
	defer cancel()
	_ = ours.client.LeaveGroupContext(leave) // commits, and spares the others the wait; they find out anyway
	end()
	return nil
}

// receive hands records over until ctx ends.
func (c *Consumer) receive(ctx context.Context, ours *partitions, in *intake.Intake) {
	log := c.cfg.Logger.With("topic", c.cfg.Name, "group", c.cfg.Group)
	for down := false; ; {
		fetches := ours.client.PollRecords(ctx, c.cfg.InFlight)
		records := fetches.Records()
		done := make([]func(), len(records))
		for i, r := range records {
			done[i] = ours.begin(r)
		}
		ours.client.AllowRebalance() // from here on a partition that is lost and won back is another one
		if ctx.Err() != nil {
			return
		}
		err := fetches.Err()
		if err != nil && !down {
			log.Warn("kafka: cannot receive, trying again", "err", err)
		} else if err == nil && down {
			log.Info("kafka: receiving again")
		}
		down = err != nil
		for i, r := range records {
			if !in.Accept(c.decode(r), done[i]) {
				return
			}
		}
	}
}

func (c *Consumer) decode(r *kgo.Record) postrider.Message {
	p := wire.Packet{Name: r.Topic, Key: string(r.Key), Body: r.Value}
	for _, h := range r.Headers {
		if strings.EqualFold(h.Key, "content-type") {
			p.ContentType = string(h.Value)
			continue
		}
		p.Headers = append(p.Headers, wire.Header{Name: h.Key, Value: string(h.Value)})
	}
	msg, err := c.codec.Decode(&p)
	if err != nil {
		c.cfg.Logger.Error("kafka: a record claims to be a CloudEvent and is none; it is handed over as it is",
			"topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "err", err)
	}
	return msg
}
