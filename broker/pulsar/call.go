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

// call is one Publish. It works in waves: within one, messages of a key go to one line, one behind the other.
type call struct {
	msgs   []postrider.Message
	next   int              // the first message that was not handed over
	routes map[string]route // of the wave, by the packets' names
	failed map[string]bool  // keys of which nothing more may be sent
	last   map[string]*slot // the wave's last message of each key
	mixed  bool             // the last ones matter
	late   bool             // the client may still use the slots

	packet codec.Packet
	slots  []slot
	bodies []byte // the client reads them after it was handed them, and perhaps after Publish has returned

	mu   sync.Mutex
	errs []error
	open int           // messages without an answer, and one more while the wave is handed over
	done chan struct{} // is told when there are none
}

// route is the way to a name, or the reason why there is none.
type route struct {
	line *line
	err  error
	stop func() bool // makes the line independent of the call's context
}

// slot is a message as the client wants it. Slots are used again: the client makes enough garbage by itself.
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

// fill puts the packet into a slot.
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

// hand gives a message to its line. It reports false if that has failed at once. Otherwise the answer comes from another
// goroutine, and perhaps never if the line ends.
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

// settle notes the client's answer to a message.
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

// finish ends the wave: all answers are there, or their lines have ended.
func (c *call) finish() {
	var flushes sync.WaitGroup
	defer flushes.Wait()
	for _, r := range c.routes {
		if r.err != nil {
			continue
		}
		if r.line.handing.Add(-1) == 0 { // otherwise somebody else fills the batch up
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

// lose settles what has no answer from a line that has ended.
func (c *call) lose(l *line) {
	for i := range c.slots {
		if c.slots[i].line == l {
			c.settle(&c.slots[i], apache.ErrProducerClosed)
		}
	}
}

// meaning classifies the client's answer to a message. It returns context errors only for what it has not queued, and
// calls too large what it has not sent; everything else may have arrived. A batch that is too large has no error to ask
// for by name, and says nothing about the small messages in it.
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
