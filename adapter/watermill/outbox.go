package watermill

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/postrider/postrider"
)

// metadataCorrelation is the metadata entry in which Watermill's own middleware stores the
// correlation ID.
const metadataCorrelation = "correlation_id"

// PublisherConfig configures how a [Publisher] enqueues messages. The zero value works, without
// ordering.
type PublisherConfig struct {
	// KeyMetadata names the metadata entry that holds the ordering key. Messages without it are
	// unordered.
	KeyMetadata string
	// TypeMetadata names the metadata entry that holds the type, such as "name" with Watermill's
	// CQRS. Without it, the topic is the message's type.
	TypeMetadata string
	// TenantMetadata names the metadata entry that holds the tenant.
	TenantMetadata string
	// ContentType is the content type of the payloads. Defaults to none.
	ContentType string
	// Change can modify every message before it is enqueued. Defaults to none.
	Change func(out *postrider.Message, in *message.Message)
}

// Publisher is a Watermill publisher that enqueues in a transaction: a published message exists if
// and only if the transaction commits. It must not be used after the transaction, and is as safe
// for concurrent use as the transaction.
type Publisher[Tx any] struct {
	ctx    context.Context //nolint:containedctx // Watermill's Publish has none, and the transaction has one
	outbox postrider.Outbox[Tx]
	tx     Tx
	cfg    PublisherConfig
}

// NewPublisher returns a publisher for one transaction. The context must be the one that the
// [postrider.Transactor] passes with the transaction: an in-memory outbox uses it to learn whether
// the transaction committed.
func NewPublisher[Tx any](ctx context.Context, outbox postrider.Outbox[Tx], tx Tx, cfg PublisherConfig) *Publisher[Tx] {
	return &Publisher[Tx]{ctx: ctx, outbox: outbox, tx: tx, cfg: cfg}
}

// Publish implements [message.Publisher]. It enqueues all messages or, on error, none.
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

// Close does nothing. The caller ends the transaction.
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

// idOf returns the UUID itself, if it is one, and otherwise a version 8 UUID derived from the hash
// of the text. Watermill allows any text, including none; the store then assigns an ID.
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
