package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/retry"
)

// Consumer is a [postrider.Consumer] that is a member of a consumer group.
type Consumer struct {
	intake.Counters

	cfg   Config
	coder *codec.Codec
	dead  intake.DeadLetters
}

// NewConsumer returns a consumer. It does not connect. Errors concern the configuration, all of
// them at once.
func NewConsumer(cfg Config) (*Consumer, error) {
	var missing error
	if cfg.Name == "" || cfg.Group == "" {
		missing = errors.New("a consumer needs Name, that of a topic, and Group")
	}
	coder, err := cfg.prepare(missing)
	if err != nil {
		return nil, err
	}
	dead, err := intake.OpenDeadLetters(cfg.DeadLetter, cfg.Name, cfg, NewPublisher)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return &Consumer{cfg: cfg, coder: coder, dead: dead}, nil
}

// Close closes the dead-letter publisher. Each Consume has already released its own resources.
func (c *Consumer) Close() error { return c.dead.Close() }

// Consume implements [postrider.Consumer].
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) (err error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	in := intake.Open(ctx, handle, intake.Config{
		Limit: c.cfg.InFlight, Waiting: c.cfg.MaxWaiting, Retry: retry.Policy{Attempts: c.cfg.Attempts}, DeadLetters: c.dead,
		Counters: &c.Counters, Logger: c.cfg.Logger,
	})
	log := c.cfg.Logger.With("topic", c.cfg.Name, "group", c.cfg.Group)
	ours := &partitions{topic: c.cfg.Name, in: in, log: log, all: make(map[int32]*partition)}
	options := []kgo.Opt{
		kgo.WithContext(life),
		kgo.ConsumerGroup(c.cfg.Group),
		kgo.ConsumeTopics(c.cfg.Name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // skip records of aborted transactions
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(time.Second),
		kgo.BlockRebalanceOnPoll(),
		// A member that the brokers have lost track of, for example after they crashed, must not
		// block the others for long.
		kgo.SessionTimeout(15 * time.Second),
		kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.FetchMaxBytes(8 << 20),
		kgo.OnPartitionsAssigned(ours.assigned),
		kgo.OnPartitionsRevoked(ours.revoked),
		kgo.OnPartitionsLost(ours.lost),
		kgo.KeepRetryableFetchErrors(),
	}
	if c.cfg.InstanceID != "" {
		options = append(options, kgo.InstanceID(c.cfg.InstanceID))
	}
	ours.client, err = c.cfg.client(c.cfg.dial, options...)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer ours.client.Close()
	c.receive(ctx, ours, log)
	in.Wait()
	leave, cancel := context.WithTimeout(life, 5*time.Second)
	defer cancel()
	_ = ours.client.LeaveGroupContext(leave) // commits, and saves the others the session timeout
	end()
	return nil
}

// receive hands records over until ctx ends.
func (c *Consumer) receive(ctx context.Context, ours *partitions, log *slog.Logger) {
	for down := false; ; {
		fetches := ours.client.PollRecords(ctx, c.cfg.InFlight)
		records := fetches.Records()
		parts, done := make([]*intake.Part, len(records)), make([]func(), len(records))
		for i, r := range records {
			parts[i], done[i] = ours.begin(r)
		}
		ours.client.AllowRebalance() // from here on, a partition that is lost and reassigned is a new one
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
			// False if the partition was revoked or ctx has ended.
			parts[i].Accept(intake.Delivery{Message: c.decode(r), Done: done[i]}) //nolint:contextcheck // the intake has its own
		}
	}
}

// placeOf identifies a record in its topic. The time distinguishes equal offsets of a topic that
// was deleted and created again.
func placeOf(r *kgo.Record) string {
	return fmt.Sprintf("%d/%d/%d", r.Partition, r.Offset, r.Timestamp.UnixMilli())
}

// packetOf reads a record of any sender.
func packetOf(r *kgo.Record) codec.Packet {
	p := codec.Packet{Name: r.Topic, Key: string(r.Key), Body: r.Value, Place: placeOf(r)}
	for _, h := range r.Headers {
		if strings.EqualFold(h.Key, "content-type") {
			p.ContentType = string(h.Value)
			continue
		}
		p.Headers = append(p.Headers, codec.Header{Name: h.Key, Value: string(h.Value)})
	}
	return p
}

func (c *Consumer) decode(r *kgo.Record) postrider.Message {
	p := packetOf(r)
	msg, err := c.coder.Decode(&p)
	if err != nil {
		c.cfg.Logger.Error("kafka: invalid CloudEvent, handing the record over undecoded",
			"topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "err", err)
	}
	return msg
}
