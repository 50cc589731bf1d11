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

// Call calls a handler and makes a [*middleware.PanicError] of its panic, so that one message cannot end the process.
func Call(ctx context.Context, handle postrider.Handler, m postrider.Message) error {
	return middleware.Recover()(handle)(ctx, m)
}

// standing is how a message that fails stands.
type standing struct {
	failures int // that count
	tries    int // that failed
	waited   time.Duration
	stopped  bool
	counters *Counters
}

// leave takes the message out of the counters.
func (s *standing) leave() {
	if s.tries > 0 {
		s.counters.failing.Add(-1)
	}
	if s.stopped {
		s.counters.stopped.Add(-1)
	}
}

// judge takes note of a failure. It returns the pause before the next attempt, and whether there should be none.
func (c *Config) judge(s *standing, err error) (pause time.Duration, exhausted bool) {
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

// say tells the log of a failure. Payloads are none of its business.
func (c *Config) say(m *postrider.Message, s *standing, pause time.Duration, exhausted bool, err error) {
	log := c.Logger.With("id", m.BrokerID(), "type", m.Type, "key", m.OrderKey(), "attempts", s.failures, "pause", pause, "err", err)
	if p, ok := err.(*middleware.PanicError); ok && s.tries == 1 { //nolint:errorlint // Call makes it, and nobody wraps it
		log = log.With("stack", p.Stack)
	}
	switch {
	case !exhausted:
		log.Warn("consumer: handler failed, trying again")
	case !s.stopped:
		s.stopped = true
		c.Counters.stopped.Add(1)
		log.Error("consumer: handler failed too often; the key stands still until an attempt succeeds, because there is no dead-letter destination")
	default:
		log.Warn("consumer: handler failed, the key still stands still")
	}
}

// DeadLetters is where messages go that have used up their attempts. The zero value is nowhere.
type DeadLetters struct {
	Publisher postrider.Publisher
	Name      string // a topic, subject, queue or stream; empty leaves the message's own
}

// OpenDeadLetters opens the publisher for dead letters with a broker's configuration, or none without a name. The messages
// are received from another name: what comes back as soon as it is buried would go round for ever.
func OpenDeadLetters[C any, P postrider.Publisher](name, from string, cfg C, open func(C) (P, error)) (DeadLetters, error) {
	switch name {
	case "":
		return DeadLetters{}, nil
	case from:
		return DeadLetters{}, fmt.Errorf("dead_letter is %q, which is what the consumer receives from: want another name", name)
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

// repetition tells a dead letter from the message, for brokers that would drop it as a duplicate.
const repetition = "dead"

// send returns nil when the message is there for good.
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

// Headers of a dead letter, beside the message's own.
const (
	HeaderDeadFrom     = "postrider-dead-from"     // the topic, subject, queue or stream that it was received from
	HeaderDeadAttempts = "postrider-dead-attempts" // how often the handler has failed
	HeaderDeadError    = "postrider-dead-error"    // the last error, shortened
)

// maxDeadError is the most bytes of an error that a dead letter carries.
const maxDeadError = 500

// bury hands a message to the dead letters and reports whether they have it. If not, it is tried again as before.
func (p *Part) bury(d *Delivery, failures int, cause error) bool {
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
		log.Error("consumer: the dead-letter destination does not take the message, trying again", "err", err)
		return false
	}
	cfg.Counters.dead.Add(1)
	log.Error("consumer: message moved to the dead-letter destination")
	return true
}

// shorten makes an error fit for a header: one line, and not too long.
func shorten(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxDeadError)], "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s))
}

// Stats is what a consumer does at the moment, and has done since it was made.
type Stats struct {
	Waiting  int64 // messages that wait, for their next attempt or behind another one of their key
	Failing  int64 // keys whose first message has failed and is tried again; a message without a key counts as one
	Stopped  int64 // those of them that have used up their attempts, where there is no dead-letter destination
	Failures int64 // of handlers, so far
	Dead     int64 // messages that were moved to the dead-letter destination, so far
}

// Counters collect [Stats]. Consumers embed them, so that they outlast a call of Consume.
type Counters struct{ waiting, failing, stopped, failures, dead atomic.Int64 }

// Stats returns the numbers so far.
func (c *Counters) Stats() Stats {
	return Stats{c.waiting.Load(), c.failing.Load(), c.stopped.Load(), c.failures.Load(), c.dead.Load()}
}
