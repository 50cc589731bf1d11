package brokers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestConsumeOnce delivers messages through each broker to handlers that update rows. Every message
// is delivered two to five times, consumers are killed all the time, and in the long tier the
// broker is restarted. Each effect happens once, in the order of its key.
func TestConsumeOnce(t *testing.T) {
	each(t, func(t *testing.T, b server) {
		messages := pick(1500, 200_000)
		restarts := pick(0, 2)
		if b.forgets {
			messages, restarts = 1500, 0
		}
		if restarts > 0 {
			need.Own(t, b.killable())
		}
		s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), b.create(t), pick(50, 1000))
		accounts := pgx.Identifier{s.cfg.Schema, "accounts"}.Sanitize()
		s.exec(`CREATE TABLE ` + accounts + ` (id int PRIMARY KEY, n int NOT NULL DEFAULT 0, sum bigint NOT NULL DEFAULT 0,
			last bigint NOT NULL DEFAULT -1, disorder int NOT NULL DEFAULT 0) WITH (fillfactor = 50)`)
		s.exec(fmt.Sprintf("INSERT INTO %s (id) SELECT generate_series(0, %d)", accounts, s.keys-1))

		again := &repeater{Publisher: b.publisher(t, s.name)}
		defer again.close()
		_, stop := s.carry(again)
		defer stop()
		written := make(chan struct{})
		go func() { defer close(written); s.enqueue(messages) }()

		settings := b.settings(t, map[string]string{"name": s.name, "group": "accounts"})
		for name, value := range map[string]map[string]string{
			"nats": {"ack_wait": "1s"}, "redis": {"claim_idle": "1s"}, "sqs": {"visibility_timeout": "1s", "poll_wait": "1s"},
		}[b.driver] {
			settings.Values[name] = value
		}
		o := order{
			Driver: b.driver, URL: settings.URL, Values: settings.Values, DSN: pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"),
			Schema: s.cfg.Schema, Batch: need.IsLong(),
		}
		var handled int
		var kills, deliveries int64
		begin := time.Now()
		timeout := time.Duration(pick(60, 1200)) * time.Second
		if b.driver == "asynq" { // checks for tasks of dead workers once a minute, after 30 s without a heartbeat
			timeout += 2 * time.Minute
		}
		for {
			if time.Since(begin) > timeout {
				t.Fatalf("%d of %d messages were handled within %v, after %d kills", handled, messages, timeout, kills)
			}
			p := o.start(t)
			// Long enough to start and work, and not much longer.
			life := time.Duration(pick(800, 6000))*time.Millisecond + rand.N(time.Duration(pick(1200, 6000))*time.Millisecond)
			limit := pick(3, 1000)
			if b.driver == "kafka" { // reassigns the partitions of a dead member only after 15 s
				life += time.Duration(pick(0, 16)) * time.Second
				limit = pick(1, 1000)
			}
			kill := time.After(life)
			if kills >= int64(limit) {
				kill = nil
			}
			for alive := true; alive && handled < messages; {
				select {
				case <-kill:
					alive = false
				case <-time.After(50 * time.Millisecond):
				}
				s.scan("SELECT sum(n) FROM "+accounts, &handled)
				alive = alive && time.Since(begin) < timeout
			}
			if handled >= messages {
				deliveries += s.settle(p, again, written, deliveries)
				break
			}
			deliveries += p.end(syscall.SIGKILL)
			kills++
			if restarts > 0 && handled > messages/4 {
				restarts--
				need.Services(t, "restart", b.killable())
			}
		}
		var sum, disorder, wrong int
		s.scan("SELECT sum(n), sum(sum), sum(disorder), count(*) FILTER (WHERE n > 0 AND last < 0) FROM "+accounts, &handled, &sum, &disorder, &wrong)
		t.Logf("%d messages, %d sent, %d delivered, %d kills, %v: %d effects, %d out of order",
			messages, int64(messages)+again.sent.Load(), deliveries, kills, time.Since(begin).Round(time.Second), handled, disorder)
		if want := messages * (messages - 1) / 2; handled != messages || sum != want || wrong != 0 {
			t.Errorf("%d effects of %d messages, and their sum is %d, want %d", handled, messages, sum, want)
		}
		if disorder > 0 && !b.unordered {
			t.Errorf("%d effects came after a later one of their key", disorder)
		}
		if deliveries < 2*int64(messages) {
			t.Errorf("%d deliveries: not every message was delivered twice", deliveries)
		}
		var deadLetters int
		s.scan("SELECT count(*) FROM "+pgx.Identifier{s.cfg.Schema, "deferred"}.Sanitize(), &deadLetters)
		if deadLetters > 0 {
			t.Errorf("%d messages were deferred", deadLetters)
		}
	})
}

// settle lets the last consumer process everything that was sent, and returns the number of
// deliveries.
func (s *scene) settle(p *process, again *repeater, written chan struct{}, before int64) int64 {
	s.t.Helper()
	<-written
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for still, last := 0, int64(-1); still < 5; {
		select {
		case <-deadline:
			s.t.Fatal("the deliveries do not end")
		case <-tick.C:
		}
		now := p.deliveries.Load()
		if now == last && again.idle() && before+now >= s.committed.Load()*2 {
			still++
		} else {
			still = 0
		}
		last = now
	}
	return p.end(syscall.SIGTERM)
}

func (s *scene) exec(sql string) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), sql); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) scan(sql string, into ...any) {
	s.t.Helper()
	if err := s.pool.QueryRow(s.t.Context(), sql).Scan(into...); err != nil {
		s.t.Fatal(err)
	}
}

// repeater sends each message again, one to four times, after its first confirmation. The copies
// have different IDs at the broker, so that the broker does not drop them.
type repeater struct {
	postrider.Publisher
	sent    atomic.Int64 // copies
	waiting atomic.Int64
	run     sync.WaitGroup
	over    atomic.Bool
}

func (r *repeater) Publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := r.Publisher.Publish(ctx, msgs)
	var copies []postrider.Message
	for i, m := range msgs {
		if errs != nil && errs[i] != nil {
			continue
		}
		for n := range 1 + rand.N(4) {
			c := m
			c.WireID = fmt.Sprintf("copy%d-%s", n, m.ID)
			copies = append(copies, c)
		}
	}
	rand.Shuffle(len(copies), func(i, j int) { copies[i], copies[j] = copies[j], copies[i] })
	r.waiting.Add(int64(len(copies)))
	r.run.Go(func() { r.repeat(copies) })
	return errs
}

// repeat sends copies until the broker has confirmed them all.
func (r *repeater) repeat(copies []postrider.Message) {
	for len(copies) > 0 && !r.over.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		errs := r.Publisher.Publish(ctx, copies)
		cancel()
		var left []postrider.Message
		for i, err := range errs {
			if err != nil {
				left = append(left, copies[i])
			}
		}
		done := int64(len(copies) - len(left))
		r.sent.Add(done)
		r.waiting.Add(-done)
		copies = left
	}
}

func (r *repeater) idle() bool { return r.waiting.Load() == 0 }

func (r *repeater) close() {
	r.over.Store(true)
	r.run.Wait()
}

func (r *repeater) KeepsOrder() bool {
	k, ok := r.Publisher.(broker.OrderKeeper)
	return ok && k.KeepsOrder()
}
