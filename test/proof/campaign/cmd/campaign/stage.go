package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/test/proof/campaign/calls"
	"github.com/postrider/postrider/test/proof/campaign/fault"
	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/work/collector"
	"github.com/postrider/postrider/test/proof/campaign/work/consumer"
	"github.com/postrider/postrider/test/proof/campaign/work/operator"
	"github.com/postrider/postrider/test/proof/campaign/work/producer"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// Limits and sizes of a campaign.
const (
	producers = 2
	consumers = 2
	callers   = 2
	writers   = 12 // concurrent transactions in a producer process

	// The oracle's own limit is shorter.
	longestDrain = 3 * time.Minute
	longestHalt  = 75 * time.Second // of the drain, without any arrival

	longestStop = 30 * time.Second // of one process
)

// stage is one run of the campaign.
type stage struct {
	options options
	screen  *screen
	log     *slog.Logger
	writer  *record.Writer
	run     record.Run

	world      *world.World
	plan       work.Plan
	collectors *collector.Collectors
	operator   *operator.Operator
	watch      *watch

	workers []*world.Process // producers and callers, which create new work
	others  []*world.Process // consumers and the receiver
}

// play executes the whole run, from the first server to the last file. The end of ctx cuts the
// faults short, not the end of the run.
func (s *stage) play(ctx context.Context, kinds []fault.Kind) (err error) {
	cleaning := context.WithoutCancel(ctx)
	if err := s.writer.Run(s.run); err != nil {
		return err
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	defer func() {
		if s.options.keep {
			s.log.Info("servers and data are left as they are", "dsn", s.world.AdminDSN())
			return
		}
		err = errors.Join(err, s.world.Stop(cleaning))
	}()

	background, stop := context.WithCancel(cleaning)
	defer stop()
	var running sync.WaitGroup
	collecting, stopCollecting := context.WithCancel(cleaning)
	defer stopCollecting()
	s.collectors = collector.Start(collecting, s.plan, s.writer.Receipt, s.log)
	s.operator = &operator.Operator{Postrider: s.world.Postrider, Log: s.log}
	s.watch = &watch{stage: s, dsn: s.world.AdminDSN()}
	start := record.Event{At: time.Now(), Kind: "start", Phase: record.Begin, Touches: []string{record.Relay}}
	s.note(start)
	if err := s.begin(ctx); err != nil {
		return err
	}
	running.Go(func() { s.operator.Run(background) })
	running.Go(func() { s.watch.run(background) })

	if err := s.warmUp(ctx); err != nil {
		return err
	}
	start.Seconds, start.At, start.Phase = time.Since(start.At).Seconds(), time.Now(), record.Heal
	s.note(start)
	s.watch.recovery(start)
	s.hurt(ctx, kinds)
	s.run.Healed = time.Now()
	s.log.Info("all faults are healed; waiting until everything has arrived")
	drained := s.drain(cleaning)
	stop()
	running.Wait()
	stopped := s.stopAll(cleaning)
	stopCollecting()
	collected := s.collectors.Wait()
	dumped := s.dump(cleaning)
	if err := errors.Join(drained, stopped, collected, dumped); err != nil {
		return err
	}
	s.run.End = time.Now()
	return nil
}

// build starts servers, creates tables and names, and starts the relays.
func (s *stage) build(ctx context.Context) (err error) {
	folder := filepath.Join(s.options.dir, "world")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	s.log.Info("starting servers", "folder", s.options.dir, "seed", s.options.seed)
	o := s.options
	s.world, err = world.Start(ctx, world.Options{
		Dir: folder, Postrider: o.postrider, Older: o.older, Skewed: o.skewed, Instance: o.instance, Postgres: o.postgres,
		Secret: work.Secret, Plain: o.plain, Once: o.once, Bulk: o.bulk, Without: o.absent(), Note: s.note,
	})
	if err != nil {
		return err
	}
	s.run.Versions = s.world.Versions(ctx)
	s.plan = work.Plan{
		Dir: o.dir, Producers: s.world.ProducerDSN(), Pooled: s.world.PooledDSN(), Consumers: s.world.ConsumerDSN(),
		Brokers: map[string]string{}, Receiver: s.world.ReceiverAddress(), Destinations: s.world.Destinations(),
		Rate: o.rate / producers, Writers: writers, Keys: o.keys, Poison: 1.0 / 20_000, Pause: 30 * time.Millisecond, Linger: time.Second,
	}
	s.run.Attempts = world.Attempts
	s.run.Once = []string{world.NATS, world.Redis}
	if o.once {
		s.run.Once = append(s.run.Once, world.Kafka)
	}
	s.run.Consumers = map[string][]string{}
	for _, d := range s.plan.Destinations {
		if d != world.HTTP {
			s.plan.Brokers[d] = s.world.Broker(d)
		}
		s.run.Consumers[d] = []string{consumer.Name(d)}
	}
	if err := s.prepare(ctx); err != nil {
		return errors.Join(err, s.world.Stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (s *stage) prepare(ctx context.Context) error {
	if err := s.plan.Save(s.planFile()); err != nil {
		return err
	}
	db, err := pgx.Connect(ctx, s.world.AdminDSN())
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if err := work.CreateTables(ctx, db, s.plan); err != nil {
		return err
	}
	if err := s.withPool(ctx, calls.Prepare); err != nil {
		return err
	}
	if err := work.Prepare(ctx, s.plan); err != nil {
		return err
	}
	s.world.OnPoison(func(ctx context.Context, destination string, n int) error {
		return s.withPool(ctx, func(ctx context.Context, pool *pgxpool.Pool) error {
			return producer.Poison(ctx, pool, s.plan, destination, n)
		})
	})
	s.world.OnOversize(func(ctx context.Context, destination string) (bool, error) {
		db, err := pgx.Connect(ctx, s.world.AdminDSN())
		if err != nil {
			return false, err
		}
		defer db.Close(ctx)
		return producer.Oversize(ctx, db, destination)
	})
	s.world.OnLoad(s.load)
	return s.world.StartRelays(ctx)
}

func (s *stage) planFile() string { return filepath.Join(s.options.dir, "world", "plan.json") }

// withPool calls a function with a pool of connections to the primary.
func (s *stage) withPool(ctx context.Context, do func(context.Context, *pgxpool.Pool) error) error {
	pool, err := pgxpool.New(ctx, s.world.AdminDSN())
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(ctx, pool)
}

// begin starts the processes of the workload.
func (s *stage) begin(ctx context.Context) error {
	addresses := make([]string, callers)
	for i := range addresses {
		address, err := port.Free()
		if err != nil {
			return err
		}
		addresses[i] = address
	}
	for i := range consumers + 1 {
		role := world.Consumer
		if i == consumers {
			role = world.Guest
		}
		if err := s.spawn(&s.others, role, fmt.Sprintf("consumer%d", i+1), "consume", "--number", fmt.Sprint(i+1)); err != nil {
			return err
		}
	}
	if err := s.spawn(&s.others, world.Receiver, "receiver", "receive"); err != nil {
		return err
	}
	for i := range producers {
		if err := s.spawn(&s.workers, world.Producer, fmt.Sprintf("producer%d", i+1), "produce"); err != nil {
			return err
		}
	}
	for i := range callers {
		err := s.spawn(&s.workers, world.Producer, fmt.Sprintf("caller%d", i+1), "call",
			"--rate", fmt.Sprint(s.options.calls), "--address", addresses[i], "--servers", strings.Join(addresses, ","), "--dir", filepath.Dir(s.planFile()))
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *stage) spawn(into *[]*world.Process, role world.Role, name, command string, more ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	metrics, err := port.Free()
	if err != nil {
		return err
	}
	p, err := s.world.Spawn(world.Program{
		Name: name, Role: role, Path: self, Metrics: "http://" + metrics + "/metrics", Idle: role == world.Guest,
		Args: append([]string{command, "--plan", s.planFile(), "--name", name, "--metrics", metrics}, more...),
	})
	if err == nil {
		*into = append(*into, p)
	}
	return err
}

// warmUp waits until messages have reached every destination without delay: everything starts at
// once on one machine, where requests may time out.
func (s *stage) warmUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		missing := []string{}
		for destination, n := range s.collectors.Counts() {
			if n == 0 {
				missing = append(missing, destination)
			}
		}
		if len(missing) == 0 && s.watch.upToDate(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("messages have not come to all destinations in time, and not at all to [%s]: see the logs in %s",
				strings.Join(missing, ", "), filepath.Join(s.options.dir, "world"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// note adds an unplanned event to the timeline.
func (s *stage) note(e record.Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	if err := s.writer.Event(e); err != nil {
		s.log.Error("the timeline cannot be written", "err", err)
	}
	if e.Phase == record.Note {
		s.log.Info("note", "target", e.Target, "detail", e.Detail)
	}
}

// drain stops the processes that create new work, and waits until nothing is pending.
func (s *stage) drain(ctx context.Context) error {
	if err := stopEach(ctx, s.workers); err != nil {
		return err
	}
	began := time.Now()
	var last string
	var moved time.Time
	for {
		left, err := s.watch.left(ctx)
		s.watch.sample(ctx) // reports when nothing is pending
		if err == nil && left.Done() && s.collectors.Quiet() > 2*time.Second && s.watch.collected(ctx) {
			return nil
		}
		s.screen.status(fmt.Sprintf("draining for %s: %v", time.Since(began).Round(time.Second), left))
		if now := fmt.Sprint(left, err); now != last {
			last, moved = now, time.Now()
		}
		if time.Since(began) > longestDrain || time.Since(moved) > longestHalt {
			s.note(record.Event{Phase: record.Note, Detail: fmt.Sprintf("not everything has arrived: %v %v", left, err)})
			for _, first := range s.watch.firstDeferred(ctx) {
				s.note(record.Event{Phase: record.Note, Detail: first})
			}
			return nil // the verdict shows what is missing
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// stopAll stops all processes as an operator would. A process that does not stop is an error.
func (s *stage) stopAll(ctx context.Context) error {
	return errors.Join(stopEach(ctx, s.world.Relays()), stopEach(ctx, s.others))
}

func stopEach(ctx context.Context, processes []*world.Process) error {
	ctx, cancel := context.WithTimeout(ctx, longestStop)
	defer cancel()
	errs := make([]error, len(processes))
	var all sync.WaitGroup
	for i, p := range processes {
		all.Go(func() {
			if err := p.Stop(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", p.Name(), err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// dump writes what the database and the processes have recorded.
func (s *stage) dump(ctx context.Context) error {
	s.screen.status("writing what the database knows")
	db, err := pgx.Connect(ctx, s.world.AdminDSN())
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if s.run.Tallies, err = work.Dump(ctx, db, s.plan, s.writer); err != nil {
		return err
	}
	if err := s.writer.Collect("operations", "leases"); err != nil {
		return err
	}
	s.run.Counts = s.operator.Counts()
	maps.Copy(s.run.Counts, s.collectors.Counts())
	return s.withPool(ctx, func(ctx context.Context, pool *pgxpool.Pool) error {
		return calls.Dump(ctx, pool, filepath.Dir(s.planFile()), s.writer)
	})
}
