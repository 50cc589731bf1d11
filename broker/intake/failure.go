package intake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/middleware"
	"github.com/postrider/postrider/retry"
)

// Call calls a handler and turns a panic into a [*middleware.PanicError], so that one message
// cannot end the process.
func Call(ctx context.Context, handle postrider.Handler, m postrider.Message) error {
	return middleware.Recover()(handle)(ctx, m)
}

// standing tracks the failures of one message.
type standing struct {
	failures int // that count against the retry policy
	tries    int // all that failed
	waited   time.Duration
	stopped  bool
	counters *Counters
}

// leave removes the message from the counters.
func (s *standing) leave() {
	if s.tries > 0 {
		s.counters.failing.Add(-1)
	}
	if s.stopped {
		s.counters.stopped.Add(-1)
	}
}

// recordFailure counts a failure. It returns the backoff before the next attempt, and whether the
// attempts are used up.
func (c *Config) recordFailure(s *standing, err error) (pause time.Duration, exhausted bool) {
	s.tries++
	c.Counters.failures.Add(1)
	if s.tries == 1 {
		c.Counters.failing.Add(1)
	}
	next := c.Retry.Decide(retry.Failure{Err: err, Attempts: s.failures, Age: s.waited, Waited: s.waited}, rand.Float64())
	s.failures, pause = next.Attempts, next.Pause
	if next.GiveUp {
		pause = c.Retry.Longest()
	}
	s.waited += pause
	return pause, next.GiveUp
}

// logFailure logs a failure. It never logs the payload.
func (c *Config) logFailure(m *postrider.Message, s *standing, pause time.Duration, exhausted bool, err error) {
	log := c.Logger.With("id", m.BrokerID(), "type", m.Type, "key", m.OrderKey(), "attempts", s.failures, "pause", pause, "err", err)
	if p, ok := err.(*middleware.PanicError); ok && s.tries == 1 { //nolint:errorlint // Call makes it, and nobody wraps it
		log = log.With("stack", p.Stack)
	}
	switch {
	case !exhausted:
		log.Warn("consumer: handler failed, will retry")
	case !s.stopped:
		s.stopped = true
		c.Counters.stopped.Add(1)
		log.Error("consumer: handler used up its attempts; the key is blocked until an attempt succeeds, because no dead-letter destination is configured")
	default:
		log.Warn("consumer: handler failed, the key is still blocked")
	}
}

// DeadLetters is the destination for messages that have used up their attempts. The zero value has
// none.
type DeadLetters struct {
	Publisher postrider.Publisher
	Name      string // a topic, subject, queue or stream; empty keeps the message's own
}

// OpenDeadLetters opens the publisher for dead letters with a broker's configuration; without a
// name it opens none. The name must differ from the one that the consumer receives from: otherwise
// it would receive its own dead letters in an endless loop.
func OpenDeadLetters[C any, P postrider.Publisher](name, from string, cfg C, open func(C) (P, error)) (DeadLetters, error) {
	switch name {
	case "":
		return DeadLetters{}, nil
	case from:
		return DeadLetters{}, fmt.Errorf("dead_letter is %q, which the consumer itself receives from: want another name", name)
	}
	p, err := open(cfg)
	return DeadLetters{p, name}, err
}

// Close closes the publisher, if there is one.
func (d DeadLetters) Close() error {
	if d.Publisher == nil {
		return nil
	}
	return d.Publisher.Close()
}

// repetition distinguishes a dead letter from the original message for brokers that drop
// duplicates.
const repetition = "dead"

// send returns nil once the destination has confirmed the message.
func (d DeadLetters) send(ctx context.Context, m postrider.Message) error {
	m.Topic = cmp.Or(d.Name, m.Topic)
	m.Repetition = repetition
	for _, err := range d.Publisher.Publish(ctx, []postrider.Message{m}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Headers of a dead letter, in addition to the message's own.
const (
	HeaderDeadFrom     = "postrider-dead-from"     // the topic, subject, queue or stream that it was received from
	HeaderDeadAttempts = "postrider-dead-attempts" // how often the handler has failed
	HeaderDeadError    = "postrider-dead-error"    // the last error, shortened
)

// maxDeadError is the maximum size of the error text in a dead letter, in bytes.
const maxDeadError = 500

// deadLetter publishes a message as a dead letter and reports whether that was confirmed. If not,
// the message is retried.
func (p *Part) deadLetter(d *Delivery, failures int, cause error) bool {
	cfg := &p.in.cfg
	m := d.Message
	m.Headers = maps.Clone(m.Headers)
	if m.Headers == nil {
		m.Headers = make(map[string]string, 3)
	}
	m.Headers[HeaderDeadFrom] = m.Topic
	m.Headers[HeaderDeadAttempts] = strconv.Itoa(failures)
	m.Headers[HeaderDeadError] = shorten(cause.Error())
	log := cfg.Logger.With("id", m.BrokerID(), "type", m.Type, "key", m.OrderKey(), "attempts", failures, "cause", cause)
	if err := cfg.DeadLetters.send(p.hard, m); err != nil {
		log.Error("consumer: the dead-letter destination did not accept the message, will retry", "err", err)
		return false
	}
	cfg.Counters.dead.Add(1)
	log.Error("consumer: message moved to the dead-letter destination")
	return true
}

// shorten makes an error text fit a header: one line of limited length.
func shorten(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxDeadError)], "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s))
}

// Stats is a snapshot of a consumer's state and totals.
type Stats struct {
	Waiting  int64 // messages that wait for their next attempt, or for another message of their key
	Failing  int64 // keys whose first message has failed and is being retried; a message without a key counts as one
	Stopped  int64 // failing keys that have used up their attempts, without a dead-letter destination
	Failures int64 // failed handler calls, in total
	Dead     int64 // messages moved to the dead-letter destination, in total
}

// Counters collects [Stats]. Consumers embed it, so that totals survive a call of Consume.
type Counters struct{ waiting, failing, stopped, failures, dead atomic.Int64 }

// Stats returns a snapshot.
func (c *Counters) Stats() Stats {
	return Stats{c.waiting.Load(), c.failing.Load(), c.stopped.Load(), c.failures.Load(), c.dead.Load()}
}
