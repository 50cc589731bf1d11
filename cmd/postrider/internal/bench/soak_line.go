package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/sleep"
)

// line is the whole path of messages, from producers to effects.
type line struct {
	lab       *Lab
	notes     *window
	producers *producers
	team      *team
	consumer  postrider.Consumer
	pool      *pgxpool.Pool // for the consumers

	stop   context.CancelFunc
	work   sync.WaitGroup
	failed chan error // the error with which the consumers have stopped
}

// consumerGroup is the group of the consumers at the broker.
const consumerGroup = "postrider-bench"

// openLine starts everything but the producers.
func (l *Lab) openLine(ctx context.Context, plan *SoakPlan) (_ *line, err error) {
	n := &line{lab: l, notes: newWindow(), failed: make(chan error, 1), stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	name := fmt.Sprintf("postrider-bench-%d", time.Now().UnixNano())
	settings := plan.Settings
	settings.Logger = l.Logger
	if plan.Broker.Create != nil {
		if err := plan.Broker.Create(ctx, &settings, name); err != nil {
			return nil, fmt.Errorf("bench: creating %s: %w", name, err)
		}
	}
	shop, err := l.engine.hire(ctx, l.Writers)
	if err != nil {
		return nil, err
	}
	n.producers = l.producersAt(shop, nil)
	n.producers.notes = n.notes
	if err := n.consume(ctx, plan, settings, name); err != nil {
		return nil, err
	}
	l.Progress("starting the relay")
	n.team, err = l.startTeam(ctx, assignment{
		relays: 1, labs: []*Lab{l}, feeds: []string{"soak"},
		to:       destination{settings.URL, name, plan.Settings.Values},
		maintain: max(time.Second, plan.Ring().Period/3),
	})
	return n, err
}

// consume starts consumers with an inbox, whose effect is an update of a row.
func (n *line) consume(ctx context.Context, plan *SoakPlan, settings broker.Settings, name string) (err error) {
	l := n.lab
	if n.pool, err = l.pool(ctx, 8); err != nil {
		return err
	}
	if err := l.createAccounts(ctx); err != nil {
		return err
	}
	db, err := l.open(n.pool)
	if err != nil {
		return err
	}
	in, err := inbox.New(db.Inbox(), "soak", inbox.Config{Logger: l.Logger, Batch: batchSize, Redelivery: time.Second})
	if err != nil {
		return err
	}
	effect := l.in(updateAccount)
	in.HandleBatch("*", func(ctx context.Context, tx pgx.Tx, msgs []postrider.Message) error {
		var b pgx.Batch
		for i := range msgs {
			b.Queue(effect, int(numberOf(&msgs[i])%accounts))
		}
		return tx.SendBatch(ctx, &b).Close()
	})
	settings.Values = maps.Clone(plan.Settings.Values)
	settings.Values["name"], settings.Values["group"] = name, consumerGroup
	if n.consumer, err = plan.Broker.Subscribe(&settings); err != nil {
		return err
	}
	ctx, n.stop = context.WithCancel(ctx)
	n.work.Go(func() {
		if err := in.Run(ctx, noted{n.consumer, n.notes}); err != nil {
			n.failed <- fmt.Errorf("bench: the consumers have ended: %w", err)
		}
	})
	// The inbox removes old entries once a minute by itself, which is not often enough for short
	// runs.
	n.work.Go(func() {
		for sleep.For(ctx, plan.inboxPeriod()/4) {
			_ = db.Inbox().Maintain(ctx) // the inbox does it too, and logs failures
		}
	})
	return nil
}

// noted is a consumer that records which effects have happened.
type noted struct {
	postrider.Consumer
	notes *window
}

// Consume implements [postrider.Consumer].
func (c noted) Consume(ctx context.Context, handle postrider.Handler) error {
	return c.Consumer.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		err := handle(ctx, m)
		if err == nil && len(m.Payload) >= numberSize {
			c.notes.handle(int64(numberOf(&m)))
		}
		return err
	})
}

// calibrate measures the rate of messages from commit to effect with producers that only wait when
// too many messages are in flight. Only the second half counts.
func (n *line) calibrate(ctx context.Context, length time.Duration) (float64, error) {
	defer n.lab.counting("finding the full rate", length)()
	n.notes.bound(roomAtFullLoad)
	defer n.notes.bound(0)
	done := make(chan error, 1)
	go func() { done <- n.producers.fullLoad(ctx, length) }()
	if !sleep.For(ctx, length/2) {
		<-done
		return 0, ctx.Err()
	}
	handled, since := n.notes.handled.Load(), time.Now()
	if err := <-done; err != nil {
		return 0, err
	}
	rate := perSecond(n.notes.handled.Load()-handled, time.Since(since))
	n.notes.bound(0)
	return rate, n.drain(ctx)
}

// drain waits until every committed message has had its effect.
func (n *line) drain(ctx context.Context) error {
	seen, since := int64(-1), time.Now()
	for {
		waiting := n.notes.waiting()
		if waiting == 0 {
			return nil
		}
		if waiting != seen {
			seen, since = waiting, time.Now()
		}
		if time.Since(since) > progressTimeout {
			return nil // the caller counts the missing ones
		}
		n.lab.progressf("%d messages wait for their effect", waiting)
		select {
		case err := <-n.failed:
			return err
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close stops everything, the relay first.
func (n *line) close() error {
	var errs []error
	if n.team != nil {
		errs = append(errs, n.team.stop())
	}
	n.stop()
	n.work.Wait()
	if n.consumer != nil {
		errs = append(errs, n.consumer.Close())
	}
	if n.producers != nil {
		n.producers.dismiss()
	}
	if n.pool != nil {
		n.pool.Close()
	}
	return errors.Join(errs...)
}
