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
	errClosed = errors.New("the topic was closed, because it was not in use or with the publisher")
)

// closeGrace is how long publications wait for a line that has ended to be gone, so that nothing of them is sent after
// they have returned. A broker that does not even answer to that is waited for by the next publication.
const closeGrace = time.Second

// line is the way to one topic: one of the client's producers, from its opening to its end. Once the line has ended, for
// whatever reason, nothing more is sent on it, and what was in flight is unknown; the next publication opens a new one.
//
// The client's producers would reconnect and send again by themselves. They are told not to, and their question how
// long to wait before they reconnect is how the line learns that the connection is lost. Their Close may not run while
// anything is handed to them (they panic), and drops without a word what is still queued in them.
type line struct {
	producer apache.Producer
	ctx      context.Context // its end is the line's
	end      context.CancelCauseFunc
	left     context.Context // ends when nobody needs to wait for answers any more
	gone     chan struct{}   // closed when nothing of the line can be sent any more

	sending sync.RWMutex // read-locked by those who hand something to the producer
	shut    bool         // nothing may be handed to it any more
	users   atomic.Int32 // calls that use the line
	idle    *time.Timer
	handing atomic.Int32 // those of them that have not yet handed over everything
}

// open asks the client for a producer, which takes a few multiples of OperationTimeout at most.
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
		if l.users.Load() == 0 { // otherwise the next use starts it again
			l.end(errClosed)
		}
	})
	var leave context.CancelFunc
	l.left, leave = context.WithCancel(context.Background())
	context.AfterFunc(l.ctx, func() {
		defer time.AfterFunc(closeGrace, leave).Stop()
		l.sending.Lock() // soon: whoever hands something over is stopped by ctx
		l.shut = true
		l.sending.Unlock()
		l.producer.Close()
		l.idle.Stop()
		leave()
		close(l.gone)
	})
	return l, nil
}

// send hands a message to the producer, which answers at once if it does not take it.
func (l *line) send(m *slot) {
	l.sending.RLock()
	defer l.sending.RUnlock()
	if l.shut {
		m.answer(nil, nil, l.ctx.Err())
	} else {
		l.producer.SendAsync(l.ctx, &m.ProducerMessage, m.answer)
	}
}

// flush makes the producer send what it has gathered.
func (l *line) flush() {
	l.sending.RLock()
	defer l.sending.RUnlock()
	if !l.shut {
		_ = l.producer.FlushWithCtx(l.ctx) // each message is told
	}
}

// Lost is closed when the line has ended.
func (l *line) Lost() <-chan struct{} { return l.ctx.Done() }

// Close ends the line and waits until it is gone.
func (l *line) Close() {
	l.end(errClosed)
	<-l.gone
}

func (c *Config) producerOptions() apache.ProducerOptions {
	return apache.ProducerOptions{
		// A message that timed out while a later one stays would be overtaken: only the end of the line ends waiting.
		SendTimeout:        -1,
		MaxPendingMessages: 4096,
		// Batches are sent when they are full and when the last publication has handed over its last message. The delay is
		// for the partitions that this has not reached yet; it costs a timer per partition.
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

// refusal matches the broker's words for what a topic does not accept, whoever asks. Text is all that the client gives: the
// name of the broker's error, alone or behind "server error: ".
var refusal = regexp.MustCompile(`(?:^|server error: )(?:TopicNotFound|AuthorizationError|TopicTerminatedError|NotAllowedError|` +
	`IncompatibleSchema|ProducerBlockedQuotaExceeded|ProducerBusy|ProducerFenced|PersistenceError|ServiceNotReady)`)

// openError classifies why a topic could not be opened: nothing was sent.
func openError(err, explained error) error {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "InvalidTopicName"), strings.Contains(text, "server error: InvalidTopicName"):
		return postrider.Permanent(explained) // there will never be such a topic
	case refusal.MatchString(text):
		return postrider.NameUnavailable(explained)
	}
	return postrider.Unavailable(explained)
}
