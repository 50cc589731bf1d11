package rabbitmq

import (
	"cmp"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// keyHeader carries the ordering key in formats without another field for it.
const keyHeader = "postrider-key"

// streamOffset is the header with a message's offset in a stream.
const streamOffset = "x-stream-offset"

// encode returns what to publish and its routing key, valid until the next call. An error means
// that the protocol cannot carry the message: sending it would close the channel, or the
// connection, of all messages.
func (l *channel) encode(m *postrider.Message) (out amqp.Publishing, route string, err error) {
	p, cfg := &l.packet, &l.link.p.cfg
	l.link.p.coder.Encode(m, p)
	route = l.link.p.NameOf(m)
	if (cfg.Format == codec.Raw || cfg.Format == codec.Debezium) && p.Key != "" {
		p.Headers = append(p.Headers, codec.Header{Name: keyHeader, Value: p.Key})
	}
	err = cmp.Or(checkShort("the name", route), checkShort("the ID", p.ID), checkShort("the content type", p.ContentType))
	clear(l.headers)
	for i := range p.Headers {
		err = cmp.Or(err, checkShort("the name of a header", p.Headers[i].Name))
		l.headers[p.Headers[i].Name] = p.Headers[i].Value
	}
	if len(p.Body) > cfg.MaxBytes {
		err = fmt.Errorf("the body has %d bytes, more than MaxBytes, %d", len(p.Body), cfg.MaxBytes)
	}
	// A header needs 6 bytes in addition to its text, all other properties together less than 512.
	if size, most := p.Size()-len(p.Body)+6*len(p.Headers)+512, l.link.Config.FrameSize; most > 0 && size > most {
		err = fmt.Errorf("the headers have %d bytes, more than the server's frame_max, %d", size, most)
	}
	return amqp.Publishing{
		Headers: l.headers, ContentType: p.ContentType, DeliveryMode: amqp.Persistent, MessageId: p.ID, Body: p.Body,
	}, route, err
}

// decode returns the undecoded message together with an error if it claims to be a CloudEvent but
// is invalid.
func decode(coder *codec.Codec, queue string, d *amqp.Delivery) (postrider.Message, error) {
	p := codec.Packet{Name: queue, ID: d.MessageId, ContentType: d.ContentType, Body: d.Body}
	for name, value := range d.Headers {
		text := fmt.Sprint(value) // other senders may use other types
		if name == keyHeader {
			p.Key = text
			continue
		}
		p.Headers = append(p.Headers, codec.Header{Name: name, Value: text})
	}
	return coder.Decode(&p)
}
