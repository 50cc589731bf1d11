package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/test/proof/peers/peer"
	"github.com/postrider/postrider/test/proof/peers/result"
)

// session is the environment of one trial: a new database, an empty topic, a receiver, and the
// peer's relay if it runs.
type session struct {
	lab     *Lab
	peer    peer.Peer
	job     peer.Job
	db      *database
	book    *book
	enqueue peer.Enqueue
	relays  []*relay
	cleanup []func(context.Context) error // in reverse order
	private int64                         // memory of the server's processes before the relay started
}

// open prepares a session. Without a peer producers write only their business rows.
func (l *Lab) open(ctx context.Context, t planned, name string) (s *session, err error) {
	s = &session{lab: l, peer: t.peer, book: newBook()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	if s.db, err = createDatabase(ctx, l.Server, name, max(l.Writers, tangledWriters)); err != nil {
		return s, err
	}
	s.cleanup = append(s.cleanup, func(ctx context.Context) error { return s.db.drop(ctx, l.Server, s.peer, s.job) })
	if t.peer == nil {
		return s, nil
	}
	s.job = peer.Job{Peer: t.peer.Name(), DSN: s.db.dsn, Broker: t.broker, Address: l.Addresses[t.broker], Topic: name, Stock: l.Stock}
	to := l.brokers[t.broker]
	if err := to.Create(ctx, name); err != nil {
		return s, err
	}
	s.cleanup = append(s.cleanup, func(ctx context.Context) error { return to.Delete(ctx, name) })
	stop, err := to.Receive(ctx, name, s.book.receive)
	if err != nil {
		return s, err
	}
	s.cleanup = append(s.cleanup, func(context.Context) error { stop(); return nil })
	if s.enqueue, err = t.peer.Setup(ctx, s.db.admin, s.job); err != nil {
		return s, err
	}
	// Dirty pages of earlier trials must not burden this one.
	_, err = s.db.admin.Exec(ctx, "CHECKPOINT")
	return s, err
}

func (s *session) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, r := range s.relays {
		r.stop()
	}
	var errs []error
	for i := len(s.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, s.cleanup[i](ctx))
	}
	return errors.Join(errs...)
}

// start starts relays.
func (s *session) start(count int) error {
	s.private = s.privateMemory()
	for range count {
		r, err := launch(s.peer, s.job, s.lab.Programs)
		if err != nil {
			return err
		}
		s.relays = append(s.relays, r)
	}
	return nil
}

// startup is how long a relay may take until its first message, such as a JVM on a busy machine.
const startup = 4 * time.Minute

var errIdle = errors.New("trial: the relay delivers nothing")

// ready waits until the relay delivers: it sends a message now and then, until all of them have
// arrived.
func (s *session) ready(ctx context.Context) error {
	probe := time.NewTicker(50 * time.Millisecond)
	defer probe.Stop()
	deadline := time.Now().Add(startup)
	for s.book.arrived.Load() == 0 {
		if time.Now().After(deadline) {
			return errIdle
		}
		for _, r := range s.relays {
			if err := r.failed(); err != nil {
				return err
			}
		}
		if err := s.produce(ctx); err != nil {
			return err
		}
		select {
		case <-probe.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.book.await(ctx, s.book.committed.Load(), deadline, 30*time.Second)
}

// tails returns the last output of the relays.
func (s *session) tails() (text string) {
	for _, r := range s.relays {
		text += "\n" + r.tail()
	}
	return text
}

// reading is a snapshot of all counters.
type reading struct {
	at                       time.Time
	number                   int64
	committed, arrived       int64
	relay, server, producers time.Duration
	wal                      int64
}

func (s *session) read(ctx context.Context) (r reading, err error) {
	if err := s.db.admin.QueryRow(ctx, "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint").Scan(&r.wal); err != nil {
		return r, err
	}
	table, err := processes()
	if err != nil {
		return r, err
	}
	for _, relay := range s.relays {
		r.relay += spent(table, relay.cmd.Process.Pid)
	}
	s.db.mu.Lock()
	for pid := range s.db.makers {
		r.producers += table[pid].own
	}
	s.db.mu.Unlock()
	r.server = spent(table, s.db.server) - r.producers
	r.at, r.number = time.Now(), s.book.next.Load()
	r.committed, r.arrived = s.book.committed.Load(), s.book.arrived.Load()
	return r, nil
}

// cell computes a cell from two readings. It also queries the current sizes.
func (s *session) cell(ctx context.Context, work string, from, to reading) (result.Cell, error) {
	seconds := to.at.Sub(from.at).Seconds()
	c := result.Cell{
		Work: work, Seconds: result.Rounded(seconds, 3),
		Committed: to.committed - from.committed, Delivered: to.arrived - from.arrived,
		CommittedPerSecond: result.Rounded(float64(to.committed-from.committed)/seconds, 1),
		DeliveredPerSecond: result.Rounded(float64(to.arrived-from.arrived)/seconds, 1),
		RelayCPU:           (to.relay - from.relay).Seconds(),
		DatabaseCPU:        (to.server - from.server).Seconds(),
		ProducersCPU:       (to.producers - from.producers).Seconds(),
		WAL:                to.wal - from.wal,
		Duplicates:         s.book.duplicates.Load(),
		Relays:             len(s.relays),
	}
	table, err := processes()
	if err != nil {
		return c, err
	}
	for _, r := range s.relays {
		for _, pid := range tree(table, r.cmd.Process.Pid) {
			c.RelayMemory += memory(pid, "VmHWM")
		}
	}
	if len(s.relays) > 0 {
		c.DatabaseMemory = max(0, s.privateMemory()-s.private)
	}
	err = s.db.admin.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&c.Size)
	return c, err
}

// privateMemory returns the private memory of the server's processes, except those for producers
// and for us.
func (s *session) privateMemory() (sum int64) {
	table, err := processes()
	if err != nil {
		return 0
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for _, pid := range tree(table, s.db.server) {
		if !s.db.makers[pid] && !s.db.ours[pid] {
			sum += memory(pid, "RssAnon")
		}
	}
	return sum
}

// interrupted adds the current activity to a cell's error.
func interrupted(what string, err error) error { return fmt.Errorf("trial: %s: %w", what, err) }
