package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// journeyRecords bounds how many audit records of a message are returned.
const journeyRecords = 1000

// Journey implements [admin.Log].
func (d *Admin) Journey(ctx context.Context, id postrider.ID) (*admin.Journey, error) {
	j := &admin.Journey{Message: postrider.Message{ID: id}, Feeds: []admin.Leg{}, Receipts: []admin.Receipt{}, Records: []admin.Entry{}}
	err := d.look(ctx, func(tx pgx.Tx) error {
		if err := d.findInLog(ctx, tx, j); err != nil {
			return err
		}
		if err := d.findDeferred(ctx, tx, j); err != nil {
			return err
		}
		if err := d.findReceipts(ctx, tx, j); err != nil {
			return err
		}
		return d.findRecords(ctx, tx, j)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("postgres: journey: %w", explain(err))
	case !j.InLog && len(j.Feeds)+len(j.Receipts)+len(j.Records) == 0:
		if j.Searched.IsZero() {
			return nil, fmt.Errorf("postgres: journey: message %s: %w", id, admin.ErrNoMessage)
		}
		return nil, fmt.Errorf("postgres: journey: message %s, in the log since %s: %w", id, j.Searched.Format(time.RFC3339), admin.ErrNoMessage)
	}
	slices.SortFunc(j.Feeds, func(a, b admin.Leg) int { return cmp.Compare(a.Feed, b.Feed) })
	return j, nil
}

// findInLog adds the message as the log has it, and how far each feed has come with it.
func (d *Admin) findInLog(ctx context.Context, tx pgx.Tx, j *admin.Journey) error {
	s, err := d.newSearch(ctx, tx, "", &admin.Filter{ID: j.Message.ID}, 0)
	if err != nil {
		return err
	}
	var seq int64
	err = s.run(func(from, to int64) (bool, error) {
		var err error
		seq, err = s.byID(ctx, j.Message.ID, from, to)
		return seq > 0, err
	})
	if err != nil {
		return err
	}
	if seq == 0 {
		if s.top > s.bottom {
			j.Searched, err = s.time(ctx, s.top)
		}
		return err
	}
	if err := d.readLog(ctx, tx, seq, j); err != nil {
		return err
	}
	return d.findLegs(ctx, tx, j)
}

// readLog adds the message that has a sequence number in the log.
func (d *Admin) readLog(ctx context.Context, tx pgx.Tx, seq int64, j *admin.Journey) error {
	var r deferredRow
	err := tx.QueryRow(ctx, d.cfg.in(`SELECT m.seq, m.created_at, m.id, m.type, m.aggregate_type, m.aggregate_id, m.key, m.topic,
		  m.routing_key, m.tenant_id, m.content_type, m.schema_version, m.schema_id, m.dedup_key, m.correlation_id, m.causation_id,
		  coalesce(m.occurred_at, m.created_at), m.deliver_after, coalesce(m.priority, 0), m.headers, m.payload
		FROM @schema@.messages m WHERE m.seq = $1 LIMIT 1`), pgx.QueryExecModeExec, seq).Scan(
		&r.seq, &r.createdAt, &r.id, &r.typ, &r.aggregateType, &r.aggregateID, &r.key, &r.topic, &r.routingKey,
		&r.tenant, &r.contentType, &r.version, &r.schemaID, &r.dedup, &r.correlation, &r.causationKey, &r.occurredAt,
		&r.deliverAfter, &r.priority, &r.headers, &r.payload)
	if err != nil {
		return err
	}
	m := r.deferred()
	j.Message, j.InLog, j.Seq, j.EnqueuedAt = m.Message, true, m.Seq, m.EnqueuedAt
	return nil
}

// findLegs adds how far each feed has come with a message of the log. The time of the oldest kept
// checkpoint that covers the message is an upper bound of when it was settled.
func (d *Admin) findLegs(ctx context.Context, tx pgx.Tx, j *admin.Journey) error {
	rows, err := tx.Query(ctx, d.cfg.in(`SELECT c.feed, @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last), k.at,
		  EXISTS (SELECT FROM @schema@.excluded x WHERE x.feed = c.feed AND x.seq = m.seq)
		FROM @schema@.cursors c
		JOIN @schema@.messages m ON @schema@.covers(c.tenant, c.others, m.tenant_id)
		LEFT JOIN LATERAL (
		  SELECT k.at FROM @schema@.checkpoints k
		  WHERE k.feed = c.feed AND k.shard = c.shard AND @schema@.settled(m.xid, m.seq, k.s1, k.s2, k.last) ORDER BY k.n LIMIT 1) k ON true
		WHERE m.seq = $1 AND c.base = @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, c.shards)`), pgx.QueryExecModeExec, j.Seq)
	if err != nil {
		return err
	}
	var feed string
	var settled, excluded bool
	var at *time.Time
	_, err = pgx.ForEachRow(rows, []any{&feed, &settled, &at, &excluded}, func() error {
		l := admin.Leg{Feed: feed, Status: feeds.StatusPending, Excluded: excluded}
		if settled {
			l.Excluded = false
			l.Status, l.Settled = feeds.StatusPublished, value(at).UTC()
		}
		j.Feeds = append(j.Feeds, l)
		return nil
	})
	return err
}

// findDeferred adds the rows of feeds and consumers that have deferred the message.
func (d *Admin) findDeferred(ctx context.Context, tx pgx.Tx, j *admin.Journey) error {
	rows, err := tx.Query(ctx, d.cfg.in("SELECT "+deferredColumns+" FROM @schema@.deferred d WHERE d.id = $1 ORDER BY d.feed DESC, d.seq"),
		pgx.QueryExecModeExec, j.Message.ID.String())
	if err != nil {
		return err
	}
	var r deferredRow
	_, err = pgx.ForEachRow(rows, r.targets(), func() error {
		m := r.deferred()
		if !j.InLog { // a consumer's numbers and times are not those of the log
			j.Message = m.Message
			if !strings.HasPrefix(m.Feed, inbox.Feed("")) {
				j.Seq, j.EnqueuedAt = m.Seq, m.EnqueuedAt
			}
		}
		l := admin.Leg{
			Feed: m.Feed, Status: m.Status, Blocking: m.Blocking, Attempts: m.Attempts, LastError: m.LastError, DeferredAt: m.DeferredAt,
			TriedAt: m.TriedAt, AvailableAt: m.AvailableAt,
		}
		if i := slices.IndexFunc(j.Feeds, func(l admin.Leg) bool { return l.Feed == m.Feed }); i >= 0 {
			j.Feeds[i] = l
		} else {
			j.Feeds = append(j.Feeds, l)
		}
		r = deferredRow{}
		return nil
	})
	return err
}

// findReceipts adds the consumers that have handled the message. Those that have deferred it record
// a receipt too, and are left out.
func (d *Admin) findReceipts(ctx context.Context, tx pgx.Tx, j *admin.Journey) error {
	rows, err := tx.Query(ctx, d.cfg.in(`SELECT c.name, r.at FROM @schema@.consumers c CROSS JOIN LATERAL (
		  SELECT i.at FROM @schema@.inbox i WHERE i.consumer = c.n AND i.id = $1
		  UNION ALL SELECT i.at FROM @schema@.inbox_strays i WHERE i.consumer = c.n AND i.id = $1) r ORDER BY c.name`),
		pgx.QueryExecModeExec, j.Message.ID.String())
	if err != nil {
		return err
	}
	var r admin.Receipt
	_, err = pgx.ForEachRow(rows, []any{&r.Consumer, &r.At}, func() error {
		r.At = r.At.UTC()
		if !slices.ContainsFunc(j.Feeds, func(l admin.Leg) bool { return l.Feed == inbox.Feed(r.Consumer) }) {
			j.Receipts = append(j.Receipts, r)
		}
		return nil
	})
	return err
}

// findRecords adds the audit records of acts on this message alone, and of resends by its sequence
// number.
func (d *Admin) findRecords(ctx context.Context, tx pgx.Tx, j *admin.Journey) error {
	rows, err := tx.Query(ctx, d.cfg.in(`SELECT `+entryColumns+` FROM @schema@.audit
		WHERE action NOT LIKE 'saga %' AND (before ->> 'id' = $1 OR target @> jsonb_build_object('id', $1::text)
		  OR target @> jsonb_build_object('message', $1::text) OR target @> jsonb_build_object('seqs', jsonb_build_array($2::bigint)))
		ORDER BY n LIMIT $3`), pgx.QueryExecModeExec, j.Message.ID.String(), j.Seq, journeyRecords)
	if err != nil {
		return err
	}
	records, err := pgx.CollectRows(rows, entryOf)
	if err != nil {
		return err
	}
	j.Records = append(j.Records, records...)
	if j.InLog || j.Message.Type != "" {
		return nil
	}
	for _, e := range records { // the message itself is gone; only the record still describes it
		if e.Before["id"] == j.Message.ID.String() {
			remember(&j.Message, e.Before)
		}
	}
	return nil
}

// remember restores the fields that an audit record keeps of a message. It leaves out the payload,
// because the record does not say whether that is text or base64.
func remember(m *postrider.Message, kept map[string]any) {
	for name, to := range map[string]*string{
		"type": &m.Type, "topic": &m.Topic, "key": &m.Key, "routing_key": &m.RoutingKey, "content_type": &m.ContentType,
	} {
		*to, _ = kept[name].(string)
	}
}
