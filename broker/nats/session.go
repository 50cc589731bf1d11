package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
)

// session is one connection of a publisher with its unanswered messages. All answers arrive on one
// subscription, each on its own subject.
type session struct {
	*link
	config *Config
	inbox  string // including the trailing dot
	atomic bool   // whether the stream accepts batches

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]waiter
}

// waiter is a message that was sent, and the call that waits for its outcome.
type waiter struct {
	call    *call
	index   int
	count   int // number of messages of an atomic batch, for its last message; otherwise 0
	subject string
}

// call collects the outcomes of messages that are sent together. The session's lock guards it.
type call struct {
	errs []error
	left int // messages without an outcome
	done chan struct{}
}

func newCall(errs []error) *call { return &call{errs, len(errs), make(chan struct{})} }

func (c *call) settle(index int, err error) {
	c.errs[index] = err
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

func openSession(ctx context.Context, config *Config) (*session, error) {
	s := &session{config: config, waiting: make(map[uint64]waiter)}
	var err error
	s.link, err = config.connect(ctx, "postrider publisher", s.refused)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *session) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.ConnectTimeout)
	defer cancel()
	inbox := s.conn.NewInbox()
	s.inbox = inbox + "."
	answers, err := s.conn.Subscribe(inbox+".*", s.answer)
	if err != nil {
		return err
	}
	err = errors.Join(answers.SetPendingLimits(-1, -1), s.conn.FlushWithContext(ctx))
	if refused := s.conn.LastError(); err == nil && errors.Is(refused, client.ErrPermissionViolation) {
		// Check now: otherwise messages would be stored but never confirmed.
		return fmt.Errorf("subscribing to answers, see inbox_prefix: %w", refused)
	}
	if err != nil || !s.config.Atomic {
		return err
	}
	stream, err := s.js.Stream(ctx, s.config.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // publishing reports the right error
	}
	s.atomic = err == nil && stream.CachedInfo().Config.AllowAtomicPublish
	return err
}

// refused handles refusals that the server sends without an answer.
func (s *session) refused(conn *client.Conn, _ *client.Subscription, err error) {
	if !errors.Is(err, client.ErrPermissionViolation) {
		return
	}
	_, quoted, publishing := strings.Cut(err.Error(), "Publish to ")
	subject, malformed := strconv.Unquote(quoted)
	if !publishing || malformed != nil {
		conn.Close() // no answers arrive any more
		return
	}
	s.abandon(func(w *waiter) bool { return w.subject == subject }, postrider.NameUnavailable(err))
}

// abandon sets the outcome of unanswered messages.
func (s *session) abandon(which func(*waiter) bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, w := range s.waiting {
		if which(&w) {
			delete(s.waiting, id)
			w.call.settle(w.index, err)
		}
	}
}

func (s *session) answer(m *client.Msg) {
	id, err := strconv.ParseUint(m.Subject[min(len(s.inbox), len(m.Subject)):], 36, 64)
	if err != nil {
		return
	}
	err = readAnswer(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.waiting[id]
	switch {
	case !ok:
		return // the call has ended
	case errors.Is(err, errNoResponders):
		err = noListenerError(w.subject)
	case err == nil && w.count > 0 && !bytes.Contains(m.Data, []byte(`"count":`+strconv.Itoa(w.count)+"}")):
		err = errors.New("nats: the stream has not acknowledged the whole batch")
	}
	delete(s.waiting, id)
	w.call.settle(w.index, err)
}

// send sends a message; its outcome goes to the waiter's call.
func (s *session) send(m *client.Msg, w waiter) {
	w.subject = m.Subject
	s.mu.Lock()
	s.last++
	id := s.last
	s.waiting[id] = w
	s.mu.Unlock()
	m.Reply = s.inbox + strconv.FormatUint(id, 36)
	if err := s.write(m); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.waiting[id]; ok {
			delete(s.waiting, id)
			w.call.settle(w.index, err)
		}
	}
}

// write hands a message to the client and classifies an error.
func (s *session) write(m *client.Msg) error {
	err := s.conn.PublishMsg(m)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrMaxPayload), errors.Is(err, client.ErrBadHeaderMsg):
		return postrider.Permanent(err)
	case errors.Is(err, client.ErrConnectionClosed), errors.Is(err, client.ErrHeadersNotSupported):
		return postrider.Unavailable(err)
	}
	s.conn.Close() // the message may have been written in part
	return err
}

// wait waits until every message of the call has an outcome. Without an answer in time the outcome
// is unknown.
func (s *session) wait(ctx context.Context, c *call) {
	timer := time.NewTimer(s.config.AckTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-c.done:
		return
	case <-timer.C:
		err = errors.New("nats: no acknowledgement in time")
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.Lost():
		err = context.Cause(s.life) //nolint:contextcheck // why the session has ended
	}
	s.abandon(func(w *waiter) bool { return w.call == c }, err)
}
