package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
)

// ConsumeResult is the cost of the inbox for a handler that updates a row, with one message or many
// per transaction.
type ConsumeResult struct {
	BarePerSecond       float64 `json:"bare_per_second"`
	InboxPerSecond      float64 `json:"inbox_per_second"`
	Ratio               float64 `json:"ratio"`
	BatchBarePerSecond  float64 `json:"batch_bare_per_second"`
	BatchInboxPerSecond float64 `json:"batch_inbox_per_second"`
	BatchRatio          float64 `json:"batch_ratio"`

	// With a full inbox; FullAgainst is the ratio of FullRatio to Ratio.
	Received       int     `json:"received,omitempty"`
	FullPerSecond  float64 `json:"full_inbox_per_second,omitempty"`
	FullRatio      float64 `json:"full_ratio,omitempty"`
	FullAgainst    float64 `json:"full_against_empty,omitempty"`
	FullBatchRatio float64 `json:"full_batch_ratio,omitempty"`
}

// accounts is the number of rows that the handlers update. Each handler has its own, as consumers
// work on different keys.
const accounts = 16_384

// batchSize is the batch size of the batched handlers.
const batchSize = 64

// Consume measures handlers that update a row for each message, without and with the inbox, in
// turn. Both sides get the same messages, in the same batches.
func Consume(ctx context.Context, l *Lab) (ConsumeResult, error) {
	c, err := l.openCounter(ctx)
	if err != nil {
		return ConsumeResult{}, err
	}
	defer c.pool.Close()
	empty, err := c.compare(ctx, l)
	if err != nil || l.Received == 0 {
		return empty, err
	}
	if err := l.fillInbox(ctx); err != nil {
		return empty, err
	}
	full, err := c.compare(ctx, l)
	empty.Received = l.Received
	empty.FullPerSecond, empty.FullRatio, empty.FullBatchRatio = full.InboxPerSecond, full.Ratio, full.BatchRatio
	empty.FullAgainst = rounded(quotient(full.Ratio, empty.Ratio), 4)
	return empty, err
}

// fillInbox fills the inbox as if messages had been received evenly over six of the seven days of
// its window.
func (l *Lab) fillInbox(ctx context.Context) error {
	const step = 500_000
	for done := 0; done < l.Received; done += step {
		l.Progress(fmt.Sprintf("receiving %d of %d", done, l.Received))
		n := min(step, l.Received-done)
		_, err := l.admin.Exec(ctx, l.in(`INSERT INTO @schema@.inbox (consumer, slot, id, at)
			SELECT c.n, t.ms / c.period % 10, (lpad(to_hex(t.ms), 12, '0') || '7' || substr(t.noise, 1, 3) || '8' || substr(t.noise, 4, 15))::uuid,
			       to_timestamp(t.ms / 1000.0)
			FROM (SELECT n, (date_part('epoch', @schema@.inbox_window()) * 1000 / 7)::bigint AS period FROM @schema@.consumers WHERE name = 'bench') c,
			     (SELECT (date_part('epoch', now()) * 1000)::bigint - 518400000 + i::bigint * 518400000 / $3::bigint AS ms, md5(i::text) AS noise
			      FROM generate_series($1::int, $2::int) i) t`), done, done+n-1, l.Received)
		if err != nil {
			return err
		}
	}
	l.Progress("writing it out")
	_, err := l.admin.Exec(ctx, "CHECKPOINT")
	return err
}

func (c *counter) compare(ctx context.Context, l *Lab) (ConsumeResult, error) {
	sides := []struct {
		what string
		run  func(context.Context, int) (int, error)
		at   int
	}{
		{"without the inbox", c.bare, l.Writers},
		{"with the inbox", c.received, l.Writers},
		{"batches, without the inbox", c.bareBatch, batchSize * 2},
		{"batches, with the inbox", c.receivedBatch, batchSize * 2},
	}
	rates := make([][]float64, len(sides))
	for round := 0; round <= l.Rounds; round++ {
		for i, side := range sides {
			phase := l.Phase
			if round == 0 {
				phase = min(phase, time.Second) // to warm up
			}
			l.Progress(fmt.Sprintf("round %d of %d, %s", max(round, 1), l.Rounds, side.what))
			rate, err := measureRate(ctx, phase, side.at, side.run)
			if err != nil {
				return ConsumeResult{}, err
			}
			if round > 0 {
				rates[i] = append(rates[i], rate)
			}
		}
	}
	bare, received, bareBatch, batch := median(rates[0]), median(rates[1]), median(rates[2]), median(rates[3])
	return ConsumeResult{
		BarePerSecond:       rounded(bare, 1),
		InboxPerSecond:      rounded(received, 1),
		Ratio:               rounded(quotient(received, bare), 4),
		BatchBarePerSecond:  rounded(bareBatch, 1),
		BatchInboxPerSecond: rounded(batch, 1),
		BatchRatio:          rounded(quotient(batch, bareBatch), 4),
	}, nil
}

// measureRate runs workers for a time, and returns how many messages they have handled per second.
func measureRate(ctx context.Context, phase time.Duration, workers int, run func(context.Context, int) (int, error)) (float64, error) {
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	begin := time.Now()
	for w := range workers {
		all.Go(func() {
			for time.Since(begin) < phase && ctx.Err() == nil && failed.Load() == nil {
				n, err := run(ctx, w)
				if err != nil {
					failed.Store(&err)
					return
				}
				done.Add(int64(n))
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return perSecond(done.Load(), time.Since(begin)), ctx.Err()
}

// counter is a consumer whose handlers increment rows.
type counter struct {
	pool         *pgxpool.Pool
	workers      int
	one          string // the effect of a message
	single, bulk *inbox.Inbox[pgx.Tx]
	bareBulk     *inbox.Inbox[pgx.Tx] // batches in the same way, without an inbox
	next         []int                // the next account, by worker
}

func (l *Lab) openCounter(ctx context.Context) (*counter, error) {
	pool, err := l.pool(ctx, max(l.Writers, 4))
	if err != nil {
		return nil, err
	}
	c := &counter{
		pool:    pool,
		workers: l.Writers,
		one:     l.in(updateAccount),
		next:    make([]int, max(l.Writers, batchSize*2)),
	}
	err = l.createAccounts(ctx)
	var db *postgres.DB
	if err == nil {
		db, err = l.open(pool)
	}
	if err == nil {
		c.single, err = inbox.New(db.Inbox(), "bench", inbox.Config{Logger: l.Logger, Retry: retry.Policy{Attempts: 1}})
	}
	if err == nil {
		c.bulk, err = inbox.New(db.Inbox(), "bench-batch", inbox.Config{Logger: l.Logger, Retry: retry.Policy{Attempts: 1}, Batch: batchSize})
	}
	if err == nil {
		c.bareBulk, err = inbox.New(forgetful{pool}, "bench-bare", inbox.Config{Logger: l.Logger, Batch: batchSize})
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	c.single.Handle("*", func(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
		_, err := tx.Exec(ctx, c.one, m.Priority)
		return err
	})
	for _, in := range []*inbox.Inbox[pgx.Tx]{c.bulk, c.bareBulk} {
		in.HandleBatch("*", func(ctx context.Context, tx pgx.Tx, msgs []postrider.Message) error {
			var b pgx.Batch
			for i := range msgs {
				b.Queue(c.one, msgs[i].Priority)
			}
			return tx.SendBatch(ctx, &b).Close()
		})
	}
	return c, nil
}

// updateAccount is the effect of a message.
const updateAccount = "UPDATE @schema@.accounts SET n = n + 1, changed = now() WHERE id = $1"

// createAccounts creates the rows that handlers update.
func (l *Lab) createAccounts(ctx context.Context) error {
	_, err := l.admin.Exec(ctx, l.in(`CREATE TABLE IF NOT EXISTS @schema@.accounts (id int PRIMARY KEY, n bigint NOT NULL DEFAULT 0, changed timestamptz)
		WITH (fillfactor = 50)`))
	if err == nil {
		_, err = l.admin.Exec(ctx, l.in("INSERT INTO @schema@.accounts (id) SELECT generate_series(0, $1 - 1) ON CONFLICT DO NOTHING"), accounts)
	}
	return err
}

// account returns the next row of one of n workers.
func (c *counter) account(worker, n int) int {
	c.next[worker]++
	return (c.next[worker]*n + worker) % (accounts / n * n)
}

// message stores the account in a field that handlers need not decode.
func message(id int) postrider.Message {
	return postrider.Message{ID: postrider.NewID(), Type: "bench", Key: strconv.Itoa(id), Priority: id}
}

func (c *counter) bare(ctx context.Context, worker int) (int, error) {
	m := message(c.account(worker, c.workers))
	return 1, pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, c.one, m.Priority)
		return err
	})
}

func (c *counter) received(ctx context.Context, worker int) (int, error) {
	return 1, c.single.Receive(ctx, message(c.account(worker, c.workers)))
}

func (c *counter) bareBatch(ctx context.Context, worker int) (int, error) {
	return 1, c.bareBulk.Receive(ctx, message(c.account(worker, batchSize*2)))
}

func (c *counter) receivedBatch(ctx context.Context, worker int) (int, error) {
	return 1, c.bulk.Receive(ctx, message(c.account(worker, batchSize*2)))
}

// forgetful is a store that records nothing, which leaves only the handler's transaction.
type forgetful struct{ pool *pgxpool.Pool }

func (forgetful) Open(context.Context, string) (time.Duration, error) { return math.MaxInt64, nil }

func (f forgetful) Handle(ctx context.Context, _ string, msgs []postrider.Message, _ bool, work inbox.Work[pgx.Tx]) ([]inbox.Verdict, error) {
	all := make([]int, len(msgs))
	for i := range all {
		all[i] = i
	}
	return make([]inbox.Verdict, len(msgs)), pgx.BeginFunc(ctx, f.pool, func(tx pgx.Tx) error { return work(ctx, tx, all) })
}

func (forgetful) Claim(context.Context, pgx.Tx, string, postrider.ID) (bool, error) { return true, nil }

func (forgetful) Defer(context.Context, string, postrider.Message, inbox.Deferral) error {
	return errors.New("bench: a handler has failed")
}

func (forgetful) Retry(context.Context, string, func(context.Context, pgx.Tx, feeds.Deferred) error, func(feeds.Deferred, error) inbox.Deferral) (inbox.Attempt, error) {
	return inbox.Attempt{Next: -1}, nil
}

func (forgetful) Heard(context.Context, string, string) error { return nil }

func (forgetful) Maintain(context.Context) error { return nil }

// Table implements [Result].
func (r ConsumeResult) Table() [][]string {
	rows := [][]string{
		{"one message a transaction, without the inbox", whole(r.BarePerSecond), "handled/s"},
		{"one message a transaction, with the inbox", whole(r.InboxPerSecond), "handled/s"},
		{"ratio", fraction(r.Ratio), ""},
		{fmt.Sprintf("batches of %d, without the inbox", batchSize), whole(r.BatchBarePerSecond), "handled/s"},
		{fmt.Sprintf("batches of %d, with the inbox", batchSize), whole(r.BatchInboxPerSecond), "handled/s"},
		{"ratio", fraction(r.BatchRatio), ""},
	}
	if r.Received > 0 {
		rows = append(rows, [][]string{
			{fmt.Sprintf("one message a transaction, with %d received before", r.Received), whole(r.FullPerSecond), "handled/s"},
			{"ratio", fraction(r.FullRatio), ""},
			{"against that of the empty inbox", fraction(r.FullAgainst), ""},
		}...)
	}
	return rows
}
