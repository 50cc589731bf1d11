package producer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/proof/campaign/work"
)

// Shape is a way of writing messages.
type Shape int

// The ways of writing.
const (
	Together   Shape = iota // Enqueue, one call for all messages
	OneByOne                // Enqueue, one call per message
	Copy                    // COPY
	Bulk                    // COPY of hundreds
	Values                  // one INSERT of several rows
	Select                  // INSERT … SELECT
	Function                // the SQL function, as used from other languages
	Prepared                // two-phase commit
	Unnumbered              // Enqueue locks the keys, and numbers are assigned after it
)

// shares of transactions, in percent.
var shares = [...]int{Together: 50, OneByOne: 10, Copy: 9, Bulk: 1, Values: 8, Select: 7, Function: 7, Prepared: 3, Unnumbered: 5}

func draw() Shape {
	n := rand.IntN(100)
	for shape, share := range shares {
		if n -= share; n < 0 {
			return Shape(shape)
		}
	}
	return Together
}

// inSQL reports whether messages are written without the library, which refuses longer texts than
// the log.
func (s Shape) inSQL() bool {
	return s == Copy || s == Bulk || s == Values || s == Select || s == Function
}

func sorted(chosen map[string]want) []want {
	return slices.SortedFunc(maps.Values(chosen), func(a, b want) int { return cmp.Compare(a.key, b.key) })
}

// insert writes messages for some keys, and their rows in the ledger.
func (p *Producer) insert(ctx context.Context, tx pgx.Tx, shape Shape, keys []want) error {
	if shape == Unnumbered {
		return p.unnumbered(ctx, tx, keys)
	}
	facts, err := p.number(ctx, tx, keys, func(destination, key string, seq int64) work.Fact {
		if rand.Float64() < p.plan.Poison && work.Spelling(key) != "" { // without a key, no operator can park it
			return work.NewPoison(destination, key, seq)
		}
		return work.NewFact(destination, key, seq)
	})
	if err != nil {
		return err
	}
	p.pause(ctx)
	if err := record(ctx, tx, facts); err != nil {
		return err
	}
	return p.enqueue(ctx, tx, facts, shape)
}

// number locks the keys, assigns their next numbers and creates their messages.
func (p *Producer) number(ctx context.Context, tx pgx.Tx, keys []want, fact func(destination, key string, seq int64) work.Fact) ([]work.Fact, error) {
	var facts []work.Fact
	var batch pgx.Batch
	for _, k := range keys {
		batch.Queue("UPDATE campaign.keys SET seq = seq + $1 WHERE key = $2 RETURNING seq", k.count, k.key).QueryRow(func(row pgx.Row) error {
			var last int64
			err := row.Scan(&last)
			for i := range int64(k.count) {
				facts = append(facts, fact(k.destination, k.key, last-int64(k.count)+1+i))
			}
			return err
		})
	}
	return facts, tx.SendBatch(ctx, &batch).Close()
}

// unnumbered writes messages that do not contain their numbers: only Enqueue serializes two writers
// of a key.
func (p *Producer) unnumbered(ctx context.Context, tx pgx.Tx, keys []want) error {
	facts := make([]work.Fact, len(keys))
	for i, k := range keys {
		facts[i] = work.NewFact(k.destination, k.key, 0)
	}
	if err := enqueueWith(ctx, tx, p.locked, facts); err != nil {
		return err
	}
	p.pause(ctx)
	var batch pgx.Batch
	for i, k := range keys {
		batch.Queue("UPDATE campaign.keys SET seq = seq + 1 WHERE key = $1 RETURNING seq", k.key).QueryRow(func(row pgx.Row) error {
			return row.Scan(&facts[i].Seq)
		})
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	return record(ctx, tx, facts)
}

// record writes rows of the ledger.
func record(ctx context.Context, tx pgx.Tx, facts []work.Fact) error {
	var ids, destinations, keys []string
	var numbers, sums []int64
	var poison, unnumbered, unordered []bool
	for _, f := range facts {
		ids, destinations, keys = append(ids, f.ID), append(destinations, f.Destination), append(keys, f.Key)
		numbers, sums = append(numbers, f.Seq), append(sums, int64(f.Sum))
		poison, unnumbered = append(poison, f.Poison), append(unnumbered, f.Unnumbered)
		unordered = append(unordered, f.Unordered)
	}
	_, err := tx.Exec(ctx, `INSERT INTO campaign.ledger (id, destination, key, seq, sum, poison, unnumbered, unordered)
		SELECT * FROM unnest($1::text[]::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::boolean[], $8::boolean[])`,
		ids, destinations, keys, numbers, sums, poison, unnumbered, unordered)
	return err
}

func enqueueWith(ctx context.Context, tx pgx.Tx, outbox *postgres.Outbox, facts []work.Fact) error {
	msgs := make([]postrider.Message, len(facts))
	for i := range facts {
		var err error
		if msgs[i], err = facts[i].Message(); err != nil {
			return err
		}
	}
	return outbox.Enqueue(ctx, tx, msgs...)
}

func (p *Producer) enqueue(ctx context.Context, tx pgx.Tx, facts []work.Fact, shape Shape) error {
	switch shape {
	case OneByOne:
		for i := range facts {
			if err := enqueueWith(ctx, tx, p.outbox, facts[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case Copy, Bulk:
		return copyIn(ctx, tx, facts)
	case Values:
		return asValues(ctx, tx, facts)
	case Select:
		return asSelect(ctx, tx, facts)
	case Function:
		return byFunction(ctx, tx, facts)
	default:
		return enqueueWith(ctx, tx, p.outbox, facts)
	}
}

func copyIn(ctx context.Context, tx pgx.Tx, facts []work.Fact) error {
	columns := []string{"id", "type", "key", "topic", "tenant_id", "content_type", "headers", "payload"}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"postrider", "messages"}, columns, pgx.CopyFromSlice(len(facts), func(i int) ([]any, error) {
		f := &facts[i]
		m, err := f.Message()
		return []any{[16]byte(m.ID), m.Type, m.Key, f.Topic, m.TenantID, m.ContentType, asJSON(f.Headers), f.Payload}, err
	}))
	return err
}

func asValues(ctx context.Context, tx pgx.Tx, facts []work.Fact) error {
	rows := make([]string, len(facts))
	var arguments []any
	for i := range facts {
		f := &facts[i]
		n := len(arguments)
		rows[i] = fmt.Sprintf("($%d::uuid, $%d, $%d, $%d, $%d, $%d, $%d::jsonb)", n+1, n+2, n+3, n+4, n+5, n+6, n+7)
		arguments = append(arguments, f.ID, f.Type(), work.Spelling(f.Key), f.Topic, work.Tenant(f.Key), f.Payload, asJSON(f.Headers))
	}
	_, err := tx.Exec(ctx, "INSERT INTO postrider.messages (id, type, key, topic, tenant_id, payload, headers) VALUES "+strings.Join(rows, ", "), arguments...)
	return err
}

func asSelect(ctx context.Context, tx pgx.Tx, facts []work.Fact) error {
	var ids, types, keys, topics, tenants, headers []string
	var payloads [][]byte
	for i := range facts {
		f := &facts[i]
		ids, types, keys, topics = append(ids, f.ID), append(types, f.Type()), append(keys, work.Spelling(f.Key)), append(topics, f.Topic)
		tenants = append(tenants, work.Tenant(f.Key))
		headers, payloads = append(headers, asJSON(f.Headers)), append(payloads, f.Payload)
	}
	_, err := tx.Exec(ctx, `INSERT INTO postrider.messages (id, type, key, topic, tenant_id, headers, payload)
		SELECT id, type, key, topic, nullif(tenant, ''), headers, payload
		FROM unnest($1::text[]::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]::jsonb[], $7::bytea[]) WITH ORDINALITY
		  AS f (id, type, key, topic, tenant, headers, payload, n)
		ORDER BY n`, ids, types, keys, topics, tenants, headers, payloads)
	return err
}

func byFunction(ctx context.Context, tx pgx.Tx, facts []work.Fact) error {
	var batch pgx.Batch
	for i := range facts {
		f := &facts[i]
		batch.Queue("SELECT postrider.enqueue($1, payload_bytes => $2, topic => $3, key => $4, headers => $5::jsonb, id => $6::uuid, tenant_id => $7)",
			f.Type(), f.Payload, f.Topic, work.Spelling(f.Key), asJSON(f.Headers), f.ID, work.Tenant(f.Key))
	}
	return tx.SendBatch(ctx, &batch).Close()
}
