package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/headers"
	"github.com/postrider/postrider/store/feeds"
)

// deferredColumns are the columns of table deferred, d, in the order of deferredRow.targets.
// briefColumns leaves out the payload.
const (
	deferredColumns = describedColumns + ", d.payload"
	briefColumns    = describedColumns + ", NULL::bytea"

	describedColumns = `d.feed, d.seq, d.shard, d.status, d.blocking, d.attempts, nullif(d.available_at, 'infinity'),
  d.deferred_at, d.tried_at, d.last_error, d.job, d.priority, d.id, d.type, d.aggregate_type, d.aggregate_id, d.key, d.topic,
  d.routing_key, d.tenant_id, d.content_type, d.schema_version, d.schema_id, d.dedup_key, d.correlation_id, d.causation_id,
  d.created_at, d.occurred_at, d.deliver_after, d.headers, d.name, d.bare,
  extract(epoch FROM clock_timestamp() - d.sent_at)::double precision`
)

// deferredRow receives a row whose columns may all be null, as in the first row that the SQL
// function due returns.
type deferredRow struct {
	seq, job                                                *int64
	shard, attempts, priority, version                      *int32
	blocking, bare                                          *bool
	availableAt, deferredAt, triedAt                        *time.Time
	createdAt, occurredAt, deliverAfter                     *time.Time
	id                                                      pgtype.UUID
	feed, status, lastError, typ, aggregateType             *string
	aggregateID, key, topic, routingKey, tenant             *string
	contentType, schemaID, dedup, correlation, causationKey *string
	name                                                    *string
	unsure                                                  *float64 // seconds
	headers, payload                                        []byte
}

func (r *deferredRow) targets() []any {
	return []any{
		&r.feed, &r.seq, &r.shard, &r.status, &r.blocking, &r.attempts, &r.availableAt,
		&r.deferredAt, &r.triedAt, &r.lastError, &r.job, &r.priority, &r.id, &r.typ, &r.aggregateType, &r.aggregateID, &r.key, &r.topic,
		&r.routingKey, &r.tenant, &r.contentType, &r.version, &r.schemaID, &r.dedup, &r.correlation, &r.causationKey,
		&r.createdAt, &r.occurredAt, &r.deliverAfter, &r.headers, &r.name, &r.bare, &r.unsure, &r.payload,
	}
}

func (r *deferredRow) deferred() feeds.Deferred {
	d := feeds.Deferred{
		Feed: value(r.feed), Shard: int(value(r.shard)), Seq: value(r.seq), Status: feeds.Status(value(r.status)), Name: value(r.name),
		Blocking: value(r.blocking), Attempts: int(value(r.attempts)), LastError: value(r.lastError), Job: value(r.job),
		EnqueuedAt: value(r.createdAt).UTC(), DeferredAt: value(r.deferredAt).UTC(), TriedAt: value(r.triedAt).UTC(),
		AvailableAt: value(r.availableAt).UTC(), Bare: value(r.bare), Unsure: time.Duration(value(r.unsure) * float64(time.Second)),
	}
	d.Message = postrider.Message{
		ID: postrider.ID(r.id.Bytes), Type: value(r.typ), AggregateType: value(r.aggregateType), AggregateID: value(r.aggregateID),
		Key: value(r.key), Topic: value(r.topic), RoutingKey: value(r.routingKey), TenantID: value(r.tenant),
		Payload: r.payload, ContentType: value(r.contentType), SchemaVersion: int(value(r.version)), SchemaID: value(r.schemaID),
		DedupKey: value(r.dedup), OccurredAt: value(r.occurredAt).UTC(), DeliverAfter: value(r.deliverAfter).UTC(),
		Priority: int(value(r.priority)), CorrelationID: value(r.correlation), CausationID: value(r.causationKey),
		Headers: headers.Parse(r.headers),
	}
	return d
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
