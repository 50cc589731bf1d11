package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/internal/stock"
)

const recallsAtOnce = 4

// Recall implements [broker.Recaller], with Once.
func (p *Publisher) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	from, ok := broker.SenderOf(ctx)
	if !ok || !p.cfg.Once {
		return slices.Repeat([]error{broker.ErrCannotRecall}, len(names))
	}
	if err := p.raise(ctx, from, names); err != nil {
		return slices.Repeat([]error{explainOnce(err)}, len(names))
	}
	return broker.EachName(names, recallsAtOnce, found, func(topic string, found func(id string)) error {
		err := p.recalls.Recall(ctx, topic, since, found, func(ctx context.Context, since time.Time, found func(id string)) error {
			return p.recallStored(ctx, topic, since, found)
		})
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition): // perhaps only for a moment
			return postrider.NameUnavailable(fmt.Errorf("kafka: topic %s: %w", topic, err))
		case errors.Is(err, broker.ErrCannotRecall):
			return err
		case errors.Is(err, postrider.ErrUnsupported):
			return broker.CannotRecall("kafka: topic %s: %w", topic, err)
		case err != nil:
			return explainOnce(fmt.Errorf("topic %s: %w", topic, err))
		}
		return nil
	})
}

// recallStored reports the committed messages that a topic has stored since a time.
func (p *Publisher) recallStored(ctx context.Context, topic string, since time.Time, found func(id string)) error {
	since, err := p.recallSince(ctx, topic, since)
	if err != nil {
		return err
	}
	var dropped time.Time
	err = p.stored(ctx, topic, since, found, func(before time.Time) { dropped = before })
	if err == nil && dropped.After(since) {
		return broker.CannotRecall("kafka: topic %s may have dropped messages that are younger than %v", topic, time.Since(since).Round(time.Second))
	}
	return err
}

// recallSince returns the time from which to read a topic, by its clock, to find what it has stored
// since a time of ours. The broker does not tell the time, but its newest record is not younger: so a
// clock of ours that is ahead makes us read more than necessary, but never too little.
func (p *Publisher) recallSince(ctx context.Context, topic string, since time.Time) (time.Time, error) {
	admin, err := newAdmin(p.cfg)
	if err != nil {
		return since, err
	}
	defer admin.Close()
	newest, err := listed(admin.ListMaxTimestampOffsets(ctx, topic))
	if err != nil {
		return since, err
	}
	last := int64(-1)
	for _, o := range newest[topic] {
		last = max(last, o.Timestamp)
	}
	from := since.Add(-stock.Skew)
	if last < 0 {
		return from, nil
	}
	if other := stock.Since(since, time.UnixMilli(last)); other.Before(from) {
		return other, nil
	}
	return from, nil
}

// A fence is the highest term under which a sender's messages were recalled. The sender's group
// holds it, as the metadata of a committed offset that nothing reads. Only the newest producer of
// the transactional ID can commit it, so terms never fall.

// raise takes the transactional ID of a sender, so that older producers can store nothing any more,
// and raises the fence to its term.
func (p *Publisher) raise(ctx context.Context, from broker.Sender, topics []string) error {
	if _, recalled := p.senderOf(from, true); recalled > from.Term {
		return errFenced
	}
	// These requests end a transaction that the client knows nothing of: so they all have to be of
	// the versions with which a transaction is begun explicitly.
	client, err := p.cfg.client(p.cfg.dial, kgo.MaxVersions(kversion.V3_6_0()))
	if err != nil {
		return err
	}
	defer client.Close()
	id := transactionOf(from.Name)
	pid, epoch, err := p.takeID(ctx, client, id)
	if err != nil {
		return err
	}
	term, err := fenceOf(ctx, client, id)
	switch {
	case err != nil:
		return err
	case term > from.Term:
		return errFenced
	case term == from.Term:
		return nil
	}
	known, err := kadm.NewClient(client).ListTopics(ctx, topics...)
	if err != nil {
		return err
	}
	known.FilterInternal()
	for _, topic := range known {
		if topic.Err == nil {
			return commitFence(ctx, client, id, pid, epoch, topic.Topic, from.Term)
		}
	}
	return nil // nothing can be stored in topics that do not exist
}

// takeID returns the number and the epoch of a new producer of a transactional ID. It waits until
// the transaction of the one before has ended.
func (p *Publisher) takeID(ctx context.Context, client *kgo.Client, id string) (pid int64, epoch int16, err error) {
	err = patiently(ctx, func() error {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &id, int32(p.transactionTimeout().Milliseconds())
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		pid, epoch = resp.ProducerID, resp.ProducerEpoch
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	return pid, epoch, err
}

// fenceOf returns the term of a fence; 0 if there is none.
func fenceOf(ctx context.Context, client *kgo.Client, id string) (term int64, err error) {
	err = patiently(ctx, func() error {
		offsets, err := kadm.NewClient(client).FetchOffsets(kadm.RequireStable(ctx), id)
		if err == nil {
			err = offsets.Error()
		}
		if errors.Is(err, kerr.GroupIDNotFound) {
			return nil
		}
		offsets.Each(func(o kadm.OffsetResponse) {
			if n, err := strconv.ParseInt(o.Metadata, 10, 64); err == nil {
				term = max(term, n)
			}
		})
		return err
	})
	return term, err
}

// patiently repeats what a coordinator refuses because it is about to start, to move, or to end a
// transaction.
func patiently(ctx context.Context, do func() error) error {
	for {
		err := do()
		var answer *kerr.Error
		errors.As(err, &answer)
		switch answer {
		case kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.ConcurrentTransactions,
			kerr.UnstableOffsetCommit:
		default:
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// commitFence commits the term in a transaction. It fails if there is a newer producer of the
// transactional ID.
func commitFence(ctx context.Context, client *kgo.Client, id string, pid int64, epoch int16, topic string, term int64) error {
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = id, pid, epoch, id
	added, err := add.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	metadata := strconv.FormatInt(term, 10)
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Metadata = &metadata
	place := kmsg.NewTxnOffsetCommitRequestTopic()
	place.Topic, place.Partitions = topic, append(place.Partitions, partition)
	write := kmsg.NewPtrTxnOffsetCommitRequest()
	write.TransactionalID, write.Group, write.ProducerID, write.ProducerEpoch = id, id, pid, epoch
	write.Topics = append(write.Topics, place)
	written, err := write.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, t := range written.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, pid, epoch, true
	ended, err := end.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(ended.ErrorCode)
	}
	return err
}
