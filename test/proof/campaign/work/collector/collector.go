package collector

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// Collectors has one collector for each broker.
type Collectors struct {
	note func(record.Receipt) error
	log  *slog.Logger
	all  sync.WaitGroup

	counts map[string]*atomic.Int64 // by destination
	latest atomic.Int64             // when the last entry was read, in nanoseconds
	failed atomic.Pointer[error]    // an error that a retry cannot fix
}

// Start reads from all brokers of a plan until ctx ends. Each receipt is recorded once, in the
// order of its partition.
func Start(ctx context.Context, plan work.Plan, note func(record.Receipt) error, log *slog.Logger) *Collectors {
	c := &Collectors{note: note, log: log, counts: map[string]*atomic.Int64{}}
	readers := map[string]func(address string, take take) func(context.Context) error{
		world.Kafka: readKafka, world.NATS: readNATS, world.RabbitMQ: readRabbitMQ, world.Redis: readRedis,
	}
	for destination, address := range plan.Brokers {
		c.counts[destination] = new(atomic.Int64)
		read := readers[destination](address, func(e entry) { c.take(destination, e) })
		c.all.Go(func() { c.persist(ctx, destination, read) })
	}
	return c
}

// Wait waits for the end of all collectors. It returns an error for entries that could not be
// recorded or that are not ours.
func (c *Collectors) Wait() error {
	c.all.Wait()
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Counts returns the number of receipts so far, by destination.
func (c *Collectors) Counts() map[string]int64 {
	counts := map[string]int64{}
	for destination, n := range c.counts {
		counts[destination] = n.Load()
	}
	return counts
}

// Quiet returns the time since the last entry.
func (c *Collectors) Quiet() time.Duration { return time.Since(time.Unix(0, c.latest.Load())) }

// entry is what a broker has at one position.
type entry struct {
	partition int
	offset    int64
	id        string
	payload   []byte
	headers   work.Ours
	at        time.Time // zero: not known
}

type take func(entry)

func (c *Collectors) take(destination string, e entry) {
	if _, foreign := e.headers.Foreign(); foreign {
		return
	}
	at, key, seq, err := work.Read(e.payload, e.headers)
	if err == nil && at != destination {
		err = fmt.Errorf("message %s is for %s", e.id, at)
	}
	r := record.Receipt{Partition: e.partition, Offset: e.offset, Sum: record.Sum(e.payload, e.headers), At: e.at}
	r.Destination, r.Key, r.Seq, r.ID = destination, key, seq, e.id
	now := time.Now()
	if r.At.IsZero() {
		r.At = now
	}
	if err == nil {
		err = c.note(r)
	}
	if err != nil {
		err = fmt.Errorf("%s, partition %d, offset %d: %w", destination, e.partition, e.offset, err)
		c.failed.CompareAndSwap(nil, &err)
		c.log.Error("an entry could not be noted", "err", err)
	}
	c.counts[destination].Add(1)
	c.latest.Store(now.UnixNano())
}

// persist retries read until ctx ends.
func (c *Collectors) persist(ctx context.Context, destination string, read func(context.Context) error) {
	for down := false; ctx.Err() == nil; {
		began := time.Now()
		err := read(ctx)
		if ctx.Err() != nil {
			return
		}
		if !down || time.Since(began) > 10*time.Second {
			c.log.Info("a collector lost its broker, and tries again", "destination", destination, "err", err)
		}
		down = true
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}
