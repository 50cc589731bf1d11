package watermill

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/postrider/postrider"
)

// metadataCorrelation is where Watermill's own middleware keeps the correlation ID.
const metadataCorrelation = "correlation_id"

// PublisherConfig says how the messages of a [Publisher] are enqueued. The zero value works, without order.
type PublisherConfig struct {
	// KeyMetadata names the metadata entry that holds the ordering key. Messages without it are in no order.
	KeyMetadata string
	// TypeMetadata names the metadata entry that holds the type, such as "name" with Watermill's CQRS. Messages without it
	// have the topic as their type.
	TypeMetadata string
	// TenantMetadata names the metadata entry that holds the tenant.
	TenantMetadata string
	// ContentType is that of the payloads. Defaults to none.
	ContentType string
	// Change has the last word on every message that is enqueued. Defaults to none.
	Change func(out *postrider.Message, in *message.Message)
}

// Publisher is a Watermill publisher that enqueues in a transaction: what is published exists if and only if the
// transaction commits. It lives as long as the transaction does, and is as safe for concurrent use as that.
type Publisher[Tx any] struct {
	ctx    context.Context //nolint:containedctx // Watermill's Publish has none, and the transaction has one
	outbox postrider.Outbox[Tx]
	tx     Tx
	cfg    PublisherConfig
}

// NewPublisher returns a publisher for one transaction. The context is that of the transaction, as its [postrider.Transactor] gives it: an
// outbox in memory learns from it whether the transaction was committed.
func NewPublisher[Tx any](ctx context.Context, outbox postrider.Outbox[Tx], tx Tx, cfg PublisherConfig) *Publisher[Tx] {
	return &Publisher[Tx]{ctx: ctx, outbox: outbox, tx: tx, cfg: cfg}
}

// Publish implements [message.Publisher]: all messages or, with an error, none.
func (p *Publisher[Tx]) Publish(topic string, msgs ...*message.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	out := make([]postrider.Message, len(msgs))
	for i, m := range msgs {
		out[i] = p.convert(topic, m)
	}
	if err := p.outbox.Enqueue(p.ctx, p.tx, out...); err != nil {
		return fmt.Errorf("watermill: topic %s: %w", topic, err)
	}
	return nil
}

// Close does nothing: the transaction is the caller's to end.
func (p *Publisher[Tx]) Close() error { return nil }

func (p *Publisher[Tx]) convert(topic string, in *message.Message) postrider.Message {
	out := postrider.Message{
		ID:            idOf(in.UUID),
		Type:          topic,
		Topic:         topic,
		Key:           in.Metadata[p.cfg.KeyMetadata],
		TenantID:      in.Metadata[p.cfg.TenantMetadata],
		Payload:       in.Payload,
		ContentType:   p.cfg.ContentType,
		CorrelationID: in.Metadata[metadataCorrelation],
		Headers:       maps.Clone(map[string]string(in.Metadata)),
	}
	if name := in.Metadata[p.cfg.TypeMetadata]; name != "" {
		out.Type = name
	}
	if in.UUID != "" {
		if out.Headers == nil {
			out.Headers = make(map[string]string, 1)
		}
		out.Headers[HeaderUUID] = in.UUID
	}
	if p.cfg.Change != nil {
		p.cfg.Change(&out, in)
	}
	return out
}

// idOf is the UUID itself, if it is one, and otherwise always the same one for the same text: a version 8 UUID of its hash.
// Watermill allows any text, also none; the store makes an ID then.
func idOf(uuid string) postrider.ID {
	if uuid == "" {
		return postrider.ID{}
	}
	if id, err := postrider.ParseID(uuid); err == nil {
		return id
	}
	sum := sha256.Sum256([]byte("watermill " + uuid))
	id := postrider.ID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}
