package pulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apache "github.com/apache/pulsar-client-go/pulsar"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// call is one Publish. It sends in waves: within a wave, all messages of a key go to one line, in
// sequence.
type call struct {
	msgs   []postrider.Message
	next   int              // the first message that was not handed over
	routes map[string]route // of the wave, by packet name
	failed map[string]bool  // keys of which nothing more may be sent
	last   map[string]*slot // the wave's last message by key
	mixed  bool             // last must be tracked
	late   bool             // the client may still use the slots

	packet codec.Packet
	slots  []slot
	bodies []byte // the client reads them after the handover, possibly after Publish has returned

	mu   sync.Mutex
	errs []error
	open int           // messages without an answer, plus one while the wave is being handed over
	done chan struct{} // receives a value when open reaches zero
}

// route is the line for a name, or the reason why there is none.
type route struct {
	line *line
	err  error
	stop func() bool // detaches the line from the call's context
}

// slot is a message in the client's form. Slots are reused, because the client itself already
// allocates a lot.
type slot struct {
	apache.ProducerMessage
	line    *line
	index   int
	pending bool
	answer  func(apache.MessageID, *apache.ProducerMessage, error)
}

func (p *Publisher) newCall(msgs []postrider.Message) *call {
	c, ok := p.calls.Get().(*call)
	if !ok {
		c = &call{routes: make(map[string]route), failed: make(map[string]bool), last: make(map[string]*slot)}
		c.done = make(chan struct{}, 1)
	}
	clear(c.failed)
	c.msgs, c.errs, c.next, c.mixed, c.bodies = msgs, make([]error, len(msgs)), 0, false, c.bodies[:0]
	if len(c.slots) < len(msgs) {
		c.slots = make([]slot, len(msgs))
	}
	for i := range msgs {
		c.mixed = c.mixed || msgs[i].Topic == "" || msgs[i].Topic != msgs[0].Topic || len(msgs[i].Payload) > large
	}
	return c
}

// fill copies the packet into a slot.
func (c *call) fill(l *line) *slot {
	m := &c.slots[c.next]
	if m.answer == nil {
		m.Properties = make(map[string]string)
		m.answer = func(_ apache.MessageID, _ *apache.ProducerMessage, err error) { c.settle(m, err) }
	}
	begin := len(c.bodies)
	c.bodies = append(c.bodies, c.packet.Body...)
	m.line, m.index, m.Payload, m.Key = l, c.next, c.bodies[begin:len(c.bodies):len(c.bodies)], c.packet.Key
	clear(m.Properties)
	for _, h := range c.packet.Headers {
		m.Properties[h.Name] = h.Value
	}
	if c.packet.ContentType != "" {
		m.Properties[contentType] = c.packet.ContentType
	}
	return m
}

// hand gives a message to its line. It returns false if that failed immediately. Otherwise another
// goroutine delivers the answer, or none comes if the line ends.
func (c *call) hand(m *slot) bool {
	c.mu.Lock()
	m.pending = true
	c.open++
	c.mu.Unlock()
	m.line.send(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errs[m.index] == nil
}

// settle records the client's answer to a message.
func (c *call) settle(m *slot, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.pending {
		m.pending = false
		c.errs[m.index] = m.line.meaning(m, err)
		c.answered()
	}
}

func (c *call) answered() {
	if c.open--; c.open == 0 {
		c.done <- struct{}{}
	}
}

// finish waits for the end of the wave: all answers have arrived, or their lines have ended.
func (c *call) finish() {
	var flushes sync.WaitGroup
	defer flushes.Wait()
	for _, r := range c.routes {
		if r.err != nil {
			continue
		}
		if r.line.handing.Add(-1) == 0 { // otherwise another call is still filling the batch
			flushes.Go(r.line.flush)
		}
		stop := context.AfterFunc(r.line.left, func() { c.lose(r.line) })
		defer func() {
			c.late = !stop() || c.late
			r.stop()
			r.line.users.Add(-1)
		}()
	}
	c.mu.Lock()
	c.answered()
	c.mu.Unlock()
	<-c.done
}

// lose settles the unanswered messages of a line that has ended.
func (c *call) lose(l *line) {
	for i := range c.slots {
		if c.slots[i].line == l {
			c.settle(&c.slots[i], apache.ErrProducerClosed)
		}
	}
}

// meaning classifies the client's answer to a message. The client returns context errors only for
// messages that it has not queued, and reports a message as too large only if it was not sent; in
// all other cases the message may have arrived. The error for a batch that is too large can be
// recognised by its text only, and says nothing about the small messages in the batch.
func (l *line) meaning(m *slot, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, apache.ErrContextExpired):
		return postrider.Unavailable(fmt.Errorf("pulsar: not sent: %w", context.Cause(l.ctx)))
	case len(m.Payload) > large && strings.Contains(err.Error(), "exceeds MaxMessageSize"):
		return postrider.Permanent(prefix(err))
	case l.ctx.Err() != nil:
		return fmt.Errorf("pulsar: not confirmed: %w", context.Cause(l.ctx))
	default:
		return fmt.Errorf("pulsar: not confirmed: %w", err)
	}
}
