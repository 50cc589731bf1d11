package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

// call is one Publish. It sends in waves: within a wave, all messages of a key go to one partition,
// so that none can be accepted after an earlier one failed. One wave is nearly always enough.
type call struct {
	p      *Publisher
	ctx    context.Context
	cancel context.CancelCauseFunc
	from   broker.Sender
	msgs   []postrider.Message
	errs   []error         // nil until a message fails
	failed map[string]bool // keys with a message that failed
}

// place is where all messages of a key go in a wave. The zero value marks keys whose further
// messages are left for the next wave.
type place struct{ topic, key string }

// wave sends what can be sent now, and returns the remaining waves.
func (c *call) wave(todo []int) (next [][]int) {
	if cause := context.Cause(c.ctx); cause != nil {
		for _, i := range todo {
			c.fail(i, postrider.Unavailable(fmt.Errorf("kafka: not sent: %w", cause)))
		}
		return nil
	}
	s, err := c.p.take(c.ctx, c.from)
	if err != nil {
		for _, i := range todo {
			c.fail(i, err)
		}
		return nil
	}
	var rest []int
	places := make(map[string]place, len(todo))
	for _, i := range todo {
		if !c.pick(s, places, i) {
			rest = append(rest, i)
		}
	}
	works := len(s.records) == 0 || s.send(c.ctx, c.cancel)
	if !works {
		next = c.collect(s)
	}
	c.p.give(s, works)
	if len(rest) > 0 {
		next = append(next, rest)
	}
	return next
}

// pick adds a message to the wave, unless it fails immediately. It returns false if the message
// must go in the next wave.
func (c *call) pick(s *session, places map[string]place, i int) bool {
	p := &s.packet
	c.p.coder.Encode(&c.msgs[i], p)
	order := p.Key
	if c.p.cfg.Format == codec.Debezium { // whose record key is not the ordering key
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
	// An upper bound that includes the batch frame and the length prefix of each part.
	if size := 100 + p.Size() + 10*len(p.Headers); order != "" && c.failed[order] {
		c.fail(i, postrider.Unavailable(postrider.ErrNotTried))
	} else if size > c.p.cfg.MaxBytes {
		err := fmt.Errorf("kafka: the message needs up to %d bytes in a batch, and max_bytes is %d", size, c.p.cfg.MaxBytes)
		c.fail(i, postrider.Permanent(err))
	} else {
		s.add(i)
	}
	return true
}

// collect records the failures of a wave and returns the waves that retry messages which did not
// cause them. A broker refuses a whole batch because of one message: collect halves the refused
// messages until that one is found.
func (c *call) collect(s *session) [][]int {
	c.p.dropIdle() // other idle producers would hit the same failure
	var again []int
	var refusal error
	for n := range s.records {
		i, err := s.indexes[n], s.outcome(c.ctx, &s.records[n])
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

// errBatch marks the final refusal of a batch because of at least one record in it.
var errBatch = errors.New("kafka: refused")

// classify marks a broker's answer for a record or its batch with its failure class and scope. It
// returns nil if the answer leaves the outcome open, such as a broken sequence, a timeout, or no
// answer.
func classify(err error) error {
	var answer *kerr.Error
	errors.As(err, &answer)
	switch answer {
	case kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp:
		return postrider.Permanent(fmt.Errorf("%w: %w", errBatch, err))
	case kerr.InvalidTopicException: // such a topic can never exist
		return postrider.Permanent(fmt.Errorf("kafka: refused: %w", err))
	case kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.TopicAuthorizationFailed, kerr.PolicyViolation,
		kerr.NotEnoughReplicas, kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.ReplicaNotAvailable,
		kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError, kerr.UnsupportedCompressionType:
		return postrider.NameUnavailable(fmt.Errorf("kafka: %w", err)) // this topic, or one of its partitions
	case kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		kerr.BrokerNotAvailable, kerr.ListenerNotFound, kerr.ThrottlingQuotaExceeded, kerr.CoordinatorNotAvailable,
		kerr.CoordinatorLoadInProgress, kerr.NotCoordinator:
		return postrider.Unavailable(fmt.Errorf("kafka: %w", err))
	}
	return nil
}
