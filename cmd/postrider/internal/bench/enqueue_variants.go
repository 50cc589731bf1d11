package bench

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
)

// Names of variants that ratios are computed from.
const (
	business          = "business"
	plain             = "plain"
	enqueue           = "enqueue"
	enqueue10         = "enqueue10"
	pipelinedBusiness = "pipelined_business"
	pipelinedEnqueue  = "pipelined_enqueue"
)

// createPlain creates an outbox table as applications write it themselves: with a number, a
// publishing time, and an index of unpublished rows.
var createPlain = []string{
	`CREATE TABLE @schema@.plain_outbox (
  id             bigserial   PRIMARY KEY,
  aggregate_type text        NOT NULL,
  aggregate_id   text        NOT NULL,
  type           text        NOT NULL,
  content_type   text        NOT NULL,
  headers        jsonb,
  payload        bytea       NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  published_at   timestamptz
)`,
	`CREATE INDEX ON @schema@.plain_outbox (created_at) WHERE published_at IS NULL`,
}

// variant is a way to write a transaction.
type variant struct {
	name     string
	messages int
	commit   func(context.Context, *clerk) error
}

func enqueueVariants() []variant {
	return []variant{
		{business, 0, apart(func(context.Context, *clerk, pgx.Tx) error { return nil })},
		{plain, 1, apart(executing(func(c *clerk) string { return c.plain }))},
		{enqueue, 1, apart(enqueuing(1))},
		{enqueue10, 10, apart(enqueuing(10))},
		{"enqueue100", 100, apart(enqueuing(100))},
		{"function", 1, apart(executing(func(c *clerk) string { return c.function }))},
		{"insert", 1, apart(executing(func(c *clerk) string { return c.insert }))},
		{pipelinedBusiness, 0, pipelined(func(c *clerk, _ *pgx.Batch) error {
			c.number++
			return nil
		})},
		{"pipelined_plain", 1, pipelined(func(c *clerk, batch *pgx.Batch) error {
			batch.Queue(c.plain, c.message()...)
			return nil
		})},
		{pipelinedEnqueue, 1, pipelined(func(c *clerk, batch *pgx.Batch) error { return c.outbox.Queue(batch, c.event()) })},
	}
}

// clerk is a writer with its own connection. It writes one transaction at a time.
type clerk struct {
	conn    *pgx.Conn
	outbox  *postgres.Outbox
	noise   []byte
	payload []byte
	number  int64

	orders, plain, insert, function string // statements
}

// newClerk connects a writer whose round trips are counted.
func (l *Lab) newClerk(ctx context.Context, count *trips) (*clerk, error) {
	db, err := l.open(l.admin)
	if err != nil {
		return nil, err
	}
	config := l.config.ConnConfig.Copy()
	config.RuntimeParams["application_name"] = producerName
	if l.SynchronousCommit != "" {
		config.RuntimeParams["synchronous_commit"] = l.SynchronousCommit
	}
	count.watch(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	const columns = "type, aggregate_type, aggregate_id, content_type, payload"
	return &clerk{
		conn: conn, outbox: db.Outbox(), noise: noise(l.Payload + 1<<16), payload: make([]byte, l.Payload),
		orders:   l.in("INSERT INTO @schema@.orders (customer, cents) VALUES ($1, $2)"),
		plain:    l.in("INSERT INTO @schema@.plain_outbox (" + columns + ") VALUES ($1, $2, $3, $4, $5)"),
		insert:   l.in("INSERT INTO @schema@.messages (" + columns + ") VALUES ($1, $2, $3, $4, $5)"),
		function: l.in("SELECT @schema@.enqueue(type => $1, aggregate_type => $2, aggregate_id => $3, content_type => $4, payload_bytes => $5)"),
	}, nil
}

// next sets a new payload, and returns the order that the message belongs to.
func (c *clerk) next() (order string) {
	c.number++
	copy(c.payload, c.noise[rand.IntN(len(c.noise)-len(c.payload)):])
	return strconv.FormatInt(c.number%keys, 10)
}

// message returns the next message as the arguments of a statement.
func (c *clerk) message() []any {
	order := c.next()
	return []any{"order.placed", "order", order, "application/octet-stream", c.payload}
}

// event returns the next message.
func (c *clerk) event() postrider.Message {
	order := c.next()
	return postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order}, c.payload)
}

// apart returns a transaction of the business row and what add writes, each in a separate round
// trip.
func apart(add func(context.Context, *clerk, pgx.Tx) error) func(context.Context, *clerk) error {
	return func(ctx context.Context, c *clerk) error {
		tx, err := c.conn.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx) //nolint:errcheck // after a commit it does nothing, after an error the first error counts
		if _, err := tx.Exec(ctx, c.orders, c.number, c.number); err != nil {
			return err
		}
		if err := add(ctx, c, tx); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
}

// executing returns a function that writes a message with a statement.
func executing(statement func(*clerk) string) func(context.Context, *clerk, pgx.Tx) error {
	return func(ctx context.Context, c *clerk, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statement(c), c.message()...)
		return err
	}
}

// enqueuing returns a function that writes messages with one Enqueue.
func enqueuing(count int) func(context.Context, *clerk, pgx.Tx) error {
	return func(ctx context.Context, c *clerk, tx pgx.Tx) error {
		msgs := make([]postrider.Message, count)
		for i := range msgs {
			msgs[i] = c.event()
		}
		return c.outbox.Enqueue(ctx, tx, msgs...)
	}
}

// pipelined returns a transaction of the business row and what add writes, in one round trip.
func pipelined(add func(*clerk, *pgx.Batch) error) func(context.Context, *clerk) error {
	return func(ctx context.Context, c *clerk) error {
		var batch pgx.Batch
		batch.Queue("begin")
		batch.Queue(c.orders, c.number, c.number)
		if err := add(c, &batch); err != nil {
			return err
		}
		batch.Queue("commit")
		return c.conn.SendBatch(ctx, &batch).Close()
	}
}
