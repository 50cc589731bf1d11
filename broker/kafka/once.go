package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// With Once, each sender publishes in transactions, under a transactional ID of its own: a new
// producer of the ID fences those before it, wherever their requests are, and aborts what they have
// not committed. A message of an uncommitted transaction does not count as stored.

// senderIdle is how long the producer of a sender that publishes nothing is kept: a relay that has
// lost a shard does not say so.
const senderIdle = 5 * time.Minute

// sender is the transactional producer of one [broker.Sender].
type sender struct {
	name string
	turn chan struct{} // holds a token while a call publishes, or the session is closed

	// Guarded by Publisher.mu.
	recalled int64     // the highest term of a recall in this process
	used     time.Time // when a call last wanted it

	session *session // idle; nil if there is none; guarded by turn
}

// errFenced is the error of a sender whose term is lower than that of a recall.
var errFenced = postrider.Unavailable(fmt.Errorf("kafka: %w", broker.ErrFenced))

// transactionOf returns the transactional ID of a sender, which is also the group of its fence.
func transactionOf(sender string) string { return "postrider/" + sender }

// senderOf returns the sender of a name and its highest recalled term, which it raises to term if
// recall is set.
func (p *Publisher) senderOf(from broker.Sender, recall bool) (s *sender, recalled int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s = p.senders[from.Name]
	if s == nil {
		s = &sender{name: from.Name, turn: make(chan struct{}, 1)}
		p.senders[from.Name] = s
		go p.dropSenders(senderIdle)
	}
	s.used = time.Now()
	if recall {
		s.recalled = max(s.recalled, from.Term)
	}
	return s, s.recalled
}

// dropSenders closes the producers of senders that have published nothing for a while.
func (p *Publisher) dropSenders(idle time.Duration) {
	var unused []*sender
	p.mu.Lock()
	for _, s := range p.senders {
		if time.Since(s.used) >= idle {
			unused = append(unused, s)
		}
	}
	p.mu.Unlock()
	for _, s := range unused {
		select {
		case s.turn <- struct{}{}:
			if s.session != nil {
				s.session.close()
				s.session = nil
			}
			<-s.turn
		default: // a call uses it
		}
	}
}

// takeOf returns the session of a sender for exclusive use: a new one if there is none, or if a
// recall has fenced it.
func (p *Publisher) takeOf(ctx context.Context, from broker.Sender) (*session, error) {
	own, _ := p.senderOf(from, false)
	select {
	case own.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, postrider.Unavailable(fmt.Errorf("kafka: not sent: %w", context.Cause(ctx)))
	}
	s, err := p.sessionOf(ctx, own, from)
	if err != nil {
		<-own.turn
	}
	return s, err
}

// sessionOf implements takeOf. The caller has the turn.
func (p *Publisher) sessionOf(ctx context.Context, own *sender, from broker.Sender) (*session, error) {
	_, recalled := p.senderOf(from, false)
	if from.Term < recalled {
		return nil, errFenced
	}
	if s := own.session; s != nil {
		own.session = nil
		if s.term >= recalled {
			return s, nil
		}
		s.close()
	}
	var s *session
	err := patiently(ctx, func() (err error) {
		s, err = p.beginSession(ctx, own, from)
		return err
	})
	if err != nil {
		return nil, explainOnce(err)
	}
	return s, nil
}

// beginSession creates a session, takes the transactional ID and looks at the fence.
func (p *Publisher) beginSession(ctx context.Context, own *sender, from broker.Sender) (*session, error) {
	id := transactionOf(from.Name)
	s, err := p.newSession(kgo.TransactionalID(id), kgo.TransactionTimeout(p.transactionTimeout()))
	if err != nil {
		return nil, err
	}
	s.sender, s.term = own, from.Term
	// The order matters: a fence is raised after the ID was taken, so a producer that does not see the
	// term is fenced itself.
	if _, _, err = s.client.ProducerID(ctx); err == nil {
		var term int64
		if term, err = fenceOf(ctx, s.client, id); err == nil && term > from.Term {
			err = errFenced
		}
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// transactionTimeout is how long a transaction may stay open: messages behind it are not visible for
// so long if nobody takes over the sender.
func (p *Publisher) transactionTimeout() time.Duration {
	return min(max(p.cfg.Timeout, 10*time.Second), 15*time.Minute)
}

// give takes the session back, and ends the turn.
func (s *sender) give(session *session, works bool) {
	if works {
		s.session = session
	}
	<-s.turn
}

// begin begins a transaction if the session has them.
func (s *session) begin() error {
	if s.sender == nil {
		return nil
	}
	return s.client.BeginTransaction()
}

// commit ends the transaction, if the session has them, after all its records were accepted.
func (s *session) commit(ctx context.Context) bool {
	if s.sender == nil {
		return true
	}
	s.ended = s.client.EndTransaction(ctx, kgo.TryCommit)
	return s.ended == nil
}

// undone returns the outcome of a record of a transaction that was not confirmed. Before the end
// was asked for, nothing of it is stored.
func (s *session) undone(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case s.ended != nil:
		return fmt.Errorf("kafka: not confirmed: %w", s.ended)
	case cause != nil:
		return postrider.Unavailable(fmt.Errorf("kafka: not sent: %w", cause))
	case err == nil, errors.Is(err, kgo.ErrClientClosed):
		return errUnsent
	default:
		return explainOnce(err)
	}
}

// explainOnce returns the error of something that has stored nothing, with its class.
func explainOnce(err error) error {
	switch {
	case errors.Is(err, errFenced):
		return err
	case errors.Is(err, kerr.ProducerFenced), errors.Is(err, kerr.InvalidProducerEpoch):
		return errFenced
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed):
		return postrider.Unavailable(fmt.Errorf("kafka: once needs Write and Describe of transactional IDs, and Read of groups, "+
			"that begin with postrider/: %w", err))
	}
	if known := classify(err); known != nil {
		return known
	}
	return postrider.Unavailable(fmt.Errorf("kafka: not sent: %w", err))
}
