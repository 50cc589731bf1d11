package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// call is one Publish. It sends in waves: in one wave all messages of a key go to one partition, so that none can be
// accepted behind one that fails. Nearly always one wave is enough.
type call struct {
	p      *Publisher
	ctx    context.Context
	cancel context.CancelCauseFunc
	msgs   []postrider.Message
	errs   []error         // nil as long as nothing has failed
	failed map[string]bool // keys with a message that failed
}

// place is where all messages of a key go in a wave. The zero value is for keys whose further ones are for the next.
type place struct{ topic, key string }

// wave sends what can be sent now, and returns the waves in which the rest follows.
func (c *call) wave(todo []int) (next [][]int) {
	if cause := context.Cause(c.ctx); cause != nil {
		for _, i := range todo {
			c.fail(i, postrider.Unavailable(fmt.Errorf("kafka: not sent: %w", cause)))
		}
		return nil
	}
	s := c.p.take()
	var rest []int
	places := make(map[string]place, len(todo))
	for _, i := range todo {
		if !c.pick(s, places, i) {
			rest = append(rest, i)
		}
	}
	if len(s.records) == 0 || s.send(c.ctx, c.cancel) {
		c.p.give(s)
	} else {
		next = c.collect(s)
	}
	if len(rest) > 0 {
		next = append(next, rest)
	}
	return next
}

// pick adds a message to the wave, unless it fails at once. It returns false if the message is for the next wave.
func (c *call) pick(s *session, places map[string]place, i int) bool {
	p := &s.packet
	c.p.coder.Encode(&c.msgs[i], p)
	order := p.Key
	if c.p.cfg.Format == codec.Debezium { // whose key is not the one that orders
		order = c.msgs[i].OrderKey()
	}
	if order != "" {
		here := place{p.Name, p.Key}
		if at, known := places[order]; known && at != here {
			places[order] = place{}
			return false
		}
		places[order] = here
	}
	// An upper bound: with the frame of a batch, and lengths before each part.
	if size := 100 + p.Size() + 10*len(p.Headers); order != "" && c.failed[order] {
		c.fail(i, postrider.Unavailable(postrider.ErrNotTried))
	} else if size > c.p.cfg.MaxBytes {
		err := fmt.Errorf("kafka: up to %d bytes in a batch, and max_bytes is %d", size, c.p.cfg.MaxBytes)
		c.fail(i, postrider.Permanent(err))
	} else {
		s.add(i)
	}
	return true
}

// collect takes over what a wave has failed with, and returns the waves in which to try again what was not to blame. A
// broker refuses a whole batch because of one message: the halves of what was refused follow, until it is found.
func (c *call) collect(s *session) [][]int {
	c.p.dropIdle() // what has just failed here would meet the others as well
	var again []int
	var refusal error
	for n := range s.records {
		i, err := s.indexes[n], s.verdict(c.ctx, &s.records[n])
		if errors.Is(err, errUnsent) {
			again = append(again, i)
		} else if errors.Is(err, errBatch) {
			again = append(again, i)
			refusal = err
		} else if err != nil {
			c.fail(i, err)
		}
	}
	switch half := len(again) / 2; {
	case len(again) == 0:
		return nil
	case refusal == nil:
		return [][]int{again}
	case half == 0:
		c.fail(again[0], refusal)
		return nil
	default:
		return [][]int{again[:half], again[half:]}
	}
}

func (c *call) fail(i int, err error) {
	if c.errs == nil {
		c.errs = make([]error, len(c.msgs))
		c.failed = make(map[string]bool)
	}
	c.errs[i] = err
	c.failed[c.msgs[i].OrderKey()] = true
}

// errBatch marks a broker's last word on a batch because of at least one record in it.
var errBatch = errors.New("kafka: refused")

// classify marks an answer of a broker on a record, or on its batch. It returns nil if the answer says nothing about what has
// happened, such as a broken sequence, a timeout, or none at all.
func classify(err error) error {
	var answer *kerr.Error
	errors.As(err, &answer)
	switch answer {
	case kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp:
		return postrider.Permanent(fmt.Errorf("%w: %w", errBatch, err))
	case kerr.InvalidTopicException: // there will never be such a topic
		return postrider.Permanent(fmt.Errorf("kafka: refused: %w", err))
	case kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.TopicAuthorizationFailed, kerr.PolicyViolation,
		kerr.NotEnoughReplicas, kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.ReplicaNotAvailable,
		kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError, kerr.UnsupportedCompressionType:
		return postrider.NameUnavailable(fmt.Errorf("kafka: %w", err)) // this topic, or a partition of it
	case kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		kerr.BrokerNotAvailable, kerr.ListenerNotFound, kerr.ThrottlingQuotaExceeded, kerr.CoordinatorNotAvailable,
		kerr.CoordinatorLoadInProgress, kerr.NotCoordinator:
		return postrider.Unavailable(fmt.Errorf("kafka: %w", err))
	}
	return nil
}
