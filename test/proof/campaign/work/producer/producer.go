package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// txTimeout bounds a transaction.
const txTimeout = 10 * time.Second

// Producer runs the writers of one process.
type Producer struct {
	plan   work.Plan
	log    *slog.Logger
	pools  []*pgxpool.Pool
	outbox *postgres.Outbox
	locked *postgres.Outbox // locks keys by itself
	pace   pace

	committed  atomic.Int64 // messages
	failed     atomic.Int64 // transactions
	rolledBack atomic.Int64 // transactions, on purpose
}

// New opens a producer. It does not wait for the database.
func New(ctx context.Context, plan work.Plan, log *slog.Logger) (*Producer, error) {
	p := &Producer{plan: plan, log: log, pace: pace{rate: plan.Rate}}
	for _, address := range []string{plan.Producers, plan.Pooled} {
		if address == "" {
			continue
		}
		config, err := pgxpool.ParseConfig(address)
		if err != nil {
			return nil, err
		}
		config.MaxConns = int32(plan.Writers)
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // also works behind a pooler
		config.ConnConfig.ConnectTimeout = 5 * time.Second
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, err
		}
		p.pools = append(p.pools, pool)
	}
	db, err := postgres.Open(p.pools[0], postgres.Config{}) // an outbox writes in any transaction
	locking, otherErr := postgres.Open(p.pools[0], postgres.Config{LockKeys: true})
	if err := errors.Join(err, otherErr); err != nil {
		return nil, err
	}
	p.outbox, p.locked = db.Outbox(), locking.Outbox()
	return p, nil
}

// Run writes until ctx ends, and then finishes its current transactions.
func (p *Producer) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range p.plan.Writers {
		pool := p.pools[i%len(p.pools)]
		all.Go(func() { p.write(ctx, pool) })
	}
	all.Go(func() { p.settle(ctx) })
	all.Wait()
	p.close()
}

func (p *Producer) close() {
	for _, pool := range p.pools {
		pool.Close()
	}
}

// Counts returns counts so far, by name.
func (p *Producer) Counts() map[string]int64 {
	return map[string]int64{
		"committed": p.committed.Load(), "failed_transactions": p.failed.Load(), "rolled_back_transactions": p.rolledBack.Load(),
	}
}

var errRollback = errors.New("rolled back on purpose")

func (p *Producer) write(ctx context.Context, pool *pgxpool.Pool) {
	for said := false; ctx.Err() == nil; {
		shape := draw()
		keys := p.choose(shape)
		total := 0
		for _, k := range keys {
			total += k.count
		}
		if !p.pace.wait(ctx, total) {
			return
		}
		err := p.transaction(context.WithoutCancel(ctx), pool, shape, keys)
		switch {
		case err == nil:
			p.committed.Add(int64(total))
			said = false
		case errors.Is(err, errRollback):
			p.rolledBack.Add(1)
		default:
			if !said {
				p.log.Warn("a transaction was given up", "err", err)
			}
			said = true
			p.failed.Add(1)
			sleep.For(ctx, 50*time.Millisecond)
		}
	}
}

// transaction writes messages for some keys. One in ten is rolled back.
func (p *Producer) transaction(ctx context.Context, pool *pgxpool.Pool, shape Shape, keys []want) error {
	ctx, cancel := context.WithTimeout(ctx, txTimeout)
	defer cancel()
	if shape == Prepared {
		return p.prepared(ctx, pool, keys)
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := p.body(ctx, tx, shape, keys); err != nil {
			return err
		}
		if rand.IntN(10) == 0 {
			return errRollback
		}
		return nil
	})
}

// body runs the transaction between begin and commit.
func (p *Producer) body(ctx context.Context, tx pgx.Tx, shape Shape, keys []want) error {
	if rand.IntN(4) == 0 { // assigns the transaction ID long before the sequence number
		if _, err := tx.Exec(ctx, "INSERT INTO campaign.other VALUES (1)"); err != nil {
			return err
		}
		p.pause(ctx)
	}
	if rand.IntN(16) == 0 { // a savepoint that is rolled back
		savepoint, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if err := p.insert(ctx, savepoint, shape, keys); err != nil {
			return err
		}
		p.pause(ctx)
		if err := savepoint.Rollback(ctx); err != nil {
			return err
		}
	}
	if err := p.insert(ctx, tx, shape, keys); err != nil {
		return err
	}
	if rand.IntN(50) == 0 { // sequence numbers far below those that relays have read meanwhile
		sleep.For(ctx, rand.N(p.plan.Linger))
	}
	p.pause(ctx)
	return nil
}

// pause sometimes waits for a moment.
func (p *Producer) pause(ctx context.Context) {
	if rand.IntN(8) == 0 {
		sleep.For(ctx, rand.N(p.plan.Pause))
	}
}

// want is the number of messages for a key.
type want struct {
	destination, key string
	count            int
}

// choose draws keys in locking order, which is the same for all writers. One draw in five falls on
// one of four hot keys of a destination.
func (p *Producer) choose(shape Shape) []want {
	number, most := 1+rand.IntN(5), 6
	if shape == Bulk {
		most = 80
	}
	chosen := map[string]want{}
	for range number {
		w := want{destination: p.destination(), count: 1 + rand.IntN(most)}
		switch {
		case shape == Unnumbered:
			w.key, w.count = work.UnnumberedKey(w.destination, rand.IntN(work.Unnumbered)), 1
		case rand.IntN(12) == 0:
			w.key = work.AwkwardKey(w.destination, rand.IntN(work.Awkward))
			if work.OnlySQL(w.key) && !shape.inSQL() {
				continue
			}
		case rand.IntN(5) == 0:
			w.key = work.Key(w.destination, rand.IntN(4))
		default:
			w.key = work.Key(w.destination, rand.IntN(p.plan.Keys))
		}
		chosen[w.key] = w
	}
	return sorted(chosen)
}

// destination draws a destination. Webhooks get half as many messages as the others, because
// receiving each takes a transaction of its own.
func (p *Producer) destination() string {
	d := p.plan.Destinations[rand.IntN(len(p.plan.Destinations))]
	if d == world.HTTP && rand.IntN(2) == 0 {
		d = p.plan.Destinations[rand.IntN(len(p.plan.Destinations))]
	}
	return d
}

// Poison commits messages that a destination must reject, each with another key.
func Poison(ctx context.Context, pool *pgxpool.Pool, plan work.Plan, destination string, n int) error {
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		return err
	}
	p := &Producer{plan: plan, outbox: db.Outbox()}
	chosen := map[string]want{}
	for len(chosen) < min(n, plan.Keys) {
		key := work.Key(destination, rand.IntN(plan.Keys))
		chosen[key] = want{destination, key, 1}
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		facts, err := p.number(ctx, tx, sorted(chosen), work.NewPoison)
		if err == nil {
			err = record(ctx, tx, facts)
		}
		if err == nil {
			err = p.enqueue(ctx, tx, facts, Together)
		}
		if err != nil {
			err = fmt.Errorf("poison: %w", err)
		}
		return err
	})
}

// Oversize commits a message, in SQL, whose key exceeds the limit, so that only the database can
// reject it. Its destination must reject it too: a relay that gets it has to defer it.
func Oversize(ctx context.Context, db *pgx.Conn, destination string) (taken bool, err error) {
	const length = 3 * postrider.MaxText // more than an index accepts, and incompressible
	var key []byte
	for len(key) < length {
		key = strconv.AppendUint(key, rand.Uint64(), 36)
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		facts := []work.Fact{work.NewNowhere(destination, string(key[:length]), 1)}
		if err := record(ctx, tx, facts); err != nil {
			return err
		}
		return byFunction(ctx, tx, facts)
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (strings.HasPrefix(refused.Code, "22") || strings.HasPrefix(refused.Code, "23")) {
		return false, nil
	}
	return err == nil, err
}
