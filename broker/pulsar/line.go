package pulsar

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apache "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"

	"github.com/postrider/postrider"
)

var (
	errLost   = errors.New("the connection to the broker was lost")
	errClosed = errors.New("the topic was closed: it was idle, or the publisher was closed")
)

// closeGrace is how long calls wait for an ended line to be closed, so that none of their messages
// is sent after they have returned. If the broker does not answer in this time, the next call waits
// for the rest.
const closeGrace = time.Second

// line is the connection to one topic: one producer of the client, from opening to end. After the
// line has ended, nothing more is sent on it, and the outcome of messages in flight is unknown. The
// next call opens a new line.
//
// By default, the client's producers reconnect and resend. That is disabled: the callback in which
// a producer asks for its reconnect backoff tells the line that the connection is lost. A producer
// must not be closed while messages are handed to it, because it panics, and Close silently drops
// messages that are still queued in it.
type line struct {
	producer apache.Producer
	ctx      context.Context // its end is the end of the line
	end      context.CancelCauseFunc
	left     context.Context // ends when calls no longer need to wait for answers
	gone     chan struct{}   // closed when nothing of the line can be sent any more

	sending sync.RWMutex // read-locked while handing messages to the producer
	shut    bool         // nothing more may be handed to the producer
	users   atomic.Int32 // calls that use the line
	idle    *time.Timer
	handing atomic.Int32 // calls that have not yet handed over all messages
}

// open opens a producer. It takes at most a few multiples of OperationTimeout.
func (p *Publisher) open(topic string) (*line, error) {
	l := &line{gone: make(chan struct{})}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	options := p.cfg.producerOptions()
	options.Topic = topic
	options.MaxReconnectToBroker = new(uint)
	options.BackOffPolicyFunc = func() backoff.Policy {
		l.end(errLost)
		return backoff.NewDefaultBackoff()
	}
	var err error
	began := time.Now()
	if l.producer, err = p.client.CreateProducer(options); err != nil {
		l.end(err)
		return nil, openError(err, p.cfg.said.explain(err, began))
	}
	l.idle = time.AfterFunc(p.cfg.IdleTimeout, func() {
		if l.users.Load() == 0 { // otherwise the next use resets it
			l.end(errClosed)
		}
	})
	var leave context.CancelFunc
	l.left, leave = context.WithCancel(context.Background())
	context.AfterFunc(l.ctx, func() {
		defer time.AfterFunc(closeGrace, leave).Stop()
		l.sending.Lock() // soon: ctx stops pending handovers
		l.shut = true
		l.sending.Unlock()
		l.producer.Close()
		l.idle.Stop()
		leave()
		close(l.gone)
	})
	return l, nil
}

// send hands a message to the producer, which answers immediately if it does not accept it.
func (l *line) send(m *slot) {
	l.sending.RLock()
	defer l.sending.RUnlock()
	if l.shut {
		m.answer(nil, nil, l.ctx.Err())
	} else {
		l.producer.SendAsync(l.ctx, &m.ProducerMessage, m.answer)
	}
}

// flush makes the producer send the messages that it has batched.
func (l *line) flush() {
	l.sending.RLock()
	defer l.sending.RUnlock()
	if !l.shut {
		_ = l.producer.FlushWithCtx(l.ctx) // each message gets its own answer
	}
}

// Lost returns a channel that is closed when the line has ended.
func (l *line) Lost() <-chan struct{} { return l.ctx.Done() }

// Close ends the line and waits until it is closed.
func (l *line) Close() {
	l.end(errClosed)
	<-l.gone
}

func (c *Config) producerOptions() apache.ProducerOptions {
	return apache.ProducerOptions{
		// A message that times out while a later one remains would be overtaken: only the end of
		// the line ends waiting.
		SendTimeout:        -1,
		MaxPendingMessages: 4096,
		// Batches are sent when they are full, and when the last call has handed over its last
		// message. The delay covers partitions that this flush has not reached yet; it needs one
		// timer per partition.
		BatchingMaxPublishDelay: 10 * time.Millisecond,
		BatchingMaxMessages:     1000,
		BatchingMaxSize:         512 << 10,
		BatcherBuilderType:      map[bool]apache.BatcherBuilderType{true: apache.KeyBasedBatchBuilder}[c.KeyBasedBatching],
		DisableMultiSchema:      true,
	}
}

var topicPattern = regexp.MustCompile(`^(?:persistent://)?([^/]+/[^/]+/)?([^/]+)$`)

// topicName returns the full name of a topic. A name without slashes belongs to the namespace.
func topicName(name, namespace string) (string, error) {
	parts := topicPattern.FindStringSubmatch(name)
	if parts == nil {
		return "", fmt.Errorf("pulsar: topic %q is not NAME, TENANT/NAMESPACE/NAME or persistent://TENANT/NAMESPACE/NAME", name)
	}
	if _, number, ok := strings.Cut(parts[2], "-partition-"); ok && strings.Trim(number, "0123456789") != "" {
		return "", fmt.Errorf(`pulsar: topic %q has "-partition-" in its name without being a partition`, name)
	}
	if parts[1] == "" {
		parts[1] = namespace + "/"
	}
	return "persistent://" + parts[1] + parts[2], nil
}

// refusal matches the broker's errors for an operation that a topic does not accept from any
// client. The client returns text only: the name of the broker's error, alone or after "server
// error: ".
var refusal = regexp.MustCompile(`(?:^|server error: )(?:TopicNotFound|AuthorizationError|TopicTerminatedError|NotAllowedError|` +
	`IncompatibleSchema|ProducerBlockedQuotaExceeded|ProducerBusy|ProducerFenced|PersistenceError|ServiceNotReady)`)

// openError classifies the reason why a topic could not be opened. Nothing was sent.
func openError(err, explained error) error {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "InvalidTopicName"), strings.Contains(text, "server error: InvalidTopicName"):
		return postrider.Permanent(explained) // such a topic can never exist
	case refusal.MatchString(text):
		return postrider.NameUnavailable(explained)
	}
	return postrider.Unavailable(explained)
}
