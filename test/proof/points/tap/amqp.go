package tap

import (
	"bytes"
	"encoding/binary"
)

// AMQP parses unencrypted AMQP 0-9-1. A call is a method; publishing a message is one call with its
// content. name names a method by its class and number.
func AMQP(name func(class, method uint16) string) func() Protocol {
	return func() Protocol { return &amqp{name: name, channels: make(map[uint16]*channel)} }
}

type amqp struct {
	name func(class, method uint16) string

	begun       bool // the protocol header was sent
	sent, heard []byte
	channels    map[uint16]*channel
}

// channel is the state of a channel.
type channel struct {
	published, confirmed uint64
	replies              int // methods that reply to a method
	publishing           *Call
	left                 uint64 // remaining bytes of the message's body
}

const (
	methodFrame = 1
	headerFrame = 2
	bodyFrame   = 3

	connectionClass = 10
	basicClass      = 60

	basicQos     = 10
	basicPublish = 40
	basicReturn  = 50
	basicDeliver = 60
	basicAck     = 80
	basicNack    = 120
)

// Cut implements [Protocol].
func (p *amqp) Cut(sent []byte) []Call {
	p.sent = append(p.sent, sent...)
	var calls []Call
	if !p.begun && len(p.sent) >= 8 {
		p.begun = true
		calls = append(calls, Call{Bytes: bytes.Clone(p.sent[:8])})
		p.sent = p.sent[8:]
	}
	for p.begun {
		kind, number, body, n, ok := frame(p.sent)
		if !ok {
			break
		}
		raw := bytes.Clone(p.sent[:n])
		p.sent = p.sent[n:]
		c := p.channel(number)
		switch {
		case kind == methodFrame && number > 0:
			call := p.method(c, number, binary.BigEndian.Uint16(body), binary.BigEndian.Uint16(body[2:]))
			call.Bytes = raw
			if c.publishing == nil {
				calls = append(calls, *call)
			}
		case kind == headerFrame && c.publishing != nil:
			c.left = binary.BigEndian.Uint64(body[4:])
			c.publishing.Bytes = append(c.publishing.Bytes, raw...)
		case kind == bodyFrame && c.publishing != nil:
			c.left -= uint64(len(body))
			c.publishing.Bytes = append(c.publishing.Bytes, raw...)
		default:
			calls = append(calls, Call{Bytes: raw})
		}
		if c.publishing != nil && kind != methodFrame && c.left == 0 {
			calls = append(calls, *c.publishing)
			c.publishing = nil
		}
	}
	return calls
}

// method returns the call of a method. A publishing method is complete with its body.
func (p *amqp) method(c *channel, number, class, method uint16) *Call {
	call := &Call{Name: p.name(class, method)}
	replies := c.replies
	switch {
	case class == basicClass && method == basicPublish:
		c.published++
		tag := c.published
		call.Answered = func() bool { return c.confirmed >= tag || c.replies > replies }
		c.publishing = call
	case class == basicClass && (method == basicAck || method == basicNack):
		call.Nudge = qos(number) // to which the server replies
		fallthrough
	default:
		call.Answered = func() bool { return c.replies > replies }
	}
	return call
}

// qos requests the same prefetch count as before.
func qos(number uint16) []byte {
	b := []byte{methodFrame}
	b = binary.BigEndian.AppendUint16(b, number)
	b = binary.BigEndian.AppendUint32(b, 11)
	b = binary.BigEndian.AppendUint16(b, basicClass)
	b = binary.BigEndian.AppendUint16(b, basicQos)
	return append(b, 0, 0, 0, 0, 0, 64, 0, frameEnd)
}

// Hear implements [Protocol].
func (p *amqp) Hear(received []byte) {
	p.heard = append(p.heard, received...)
	for {
		kind, number, body, n, ok := frame(p.heard)
		if !ok {
			return
		}
		p.heard = p.heard[n:]
		if kind != methodFrame {
			continue
		}
		c := p.channel(number)
		class, method := binary.BigEndian.Uint16(body), binary.BigEndian.Uint16(body[2:])
		switch {
		case class == basicClass && (method == basicAck || method == basicNack):
			c.confirmed = max(c.confirmed, binary.BigEndian.Uint64(body[4:]))
		case class == basicClass && (method == basicDeliver || method == basicReturn), class == connectionClass:
		default:
			c.replies++
		}
	}
}

func (p *amqp) channel(number uint16) *channel {
	if p.channels[number] == nil {
		p.channels[number] = new(channel)
	}
	return p.channels[number]
}

const frameEnd = 0xCE

// frame parses the first frame and returns its length.
func frame(b []byte) (kind byte, number uint16, body []byte, n int, ok bool) {
	if len(b) < 7 {
		return 0, 0, nil, 0, false
	}
	size := int(binary.BigEndian.Uint32(b[3:]))
	n = 7 + size + 1
	if len(b) < n {
		return 0, 0, nil, 0, false
	}
	return b[0], binary.BigEndian.Uint16(b[1:]), b[7 : 7+size], n, true
}
