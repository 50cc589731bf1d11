package brokers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

const relayVariable = "POSTRIDER_TEST_RELAY_PROCESS"

// relayOrder configures a relay process.
type relayOrder struct {
	Driver, URL, DSN, Schema string
	Values                   map[string]string
	Lease                    time.Duration
	BatchSize                int
}

// serveRelay runs a relay until SIGTERM.
func serveRelay(text string) error {
	var o relayOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	pool, err := pgxpool.New(ctx, o.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := postgres.Open(pool, postgres.Config{Schema: o.Schema})
	if err != nil {
		return err
	}
	driver, err := broker.Lookup(o.Driver)
	if err != nil {
		return err
	}
	pub, err := driver.Open(&broker.Settings{URL: o.URL, Values: o.Values, Logger: log})
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	r, err := relay.New(db.Feeds(), pub, relay.Config{Lease: o.Lease, BatchSize: o.BatchSize, Logger: log})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func (o relayOrder) start(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), relayVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// drained waits until every message is settled.
func (s *scene) drained(within time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		list, err := s.db.Admin().ListFeeds(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if len(list) == 1 && list[0].Pending+list[0].Deferred == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("not everything was settled within %v: %+v", within, list)
		}
	}
}

// end ends a relay process.
func end(r *exec.Cmd, with syscall.Signal) {
	_ = r.Process.Signal(syscall.SIGCONT)
	_ = r.Process.Signal(with)
	_ = r.Wait()
}

// eachOnce runs a test for every broker that can be asked what has arrived.
func eachOnce(t *testing.T, why string, lease time.Duration, test func(t *testing.T, b server, s *scene, o relayOrder)) {
	for _, b := range servers {
		if !b.once && !b.onceOption {
			continue
		}
		t.Run(b.driver, func(t *testing.T) {
			need.Long(t, why)
			need.Env(t, b.variable, b.service)
			dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
			s := newScene(t, dsn, b.create(t), 100)
			settings := b.sending(t, s.name)
			if b.onceOption {
				settings.Values["once"] = "true"
			}
			test(t, b, s, relayOrder{Driver: b.driver, URL: settings.URL, Values: settings.Values, DSN: dsn, Schema: s.cfg.Schema, Lease: lease})
		})
	}
}

// expectOnce fails unless everything has arrived in order, and nothing twice.
func (s *scene) expectOnce(v outcome) {
	s.t.Helper()
	s.expect(v, true)
	if v.received != v.distinct {
		s.t.Errorf("%d repetitions", v.received-v.distinct)
	}
}

// TestOnce kills relays in the middle of their work, and stops others for longer than their lease,
// who then go on where they were: everything arrives in order, and exactly once.
func TestOnce(t *testing.T) {
	eachOnce(t, "kills and stops relays for minutes", 2*time.Second, func(t *testing.T, b server, s *scene, o relayOrder) {
		o.BatchSize = 50 // many calls
		relays := []*exec.Cmd{o.start(t), o.start(t)}
		t.Cleanup(func() {
			for _, r := range relays {
				end(r, syscall.SIGKILL)
			}
		})
		random := rand.New(rand.NewPCG(3, 4))
		written := s.steady(3000)
		for fault := range 60 {
			time.Sleep(o.Lease/2 + time.Duration(random.IntN(1000))*time.Millisecond)
			victim := random.IntN(2)
			if fault%3 == 2 {
				_ = relays[victim].Process.Signal(syscall.SIGSTOP)
				time.Sleep(o.Lease * 2)
				_ = relays[victim].Process.Signal(syscall.SIGCONT)
				continue
			}
			end(relays[victim], syscall.SIGKILL)
			relays[victim] = o.start(t)
		}
		written()
		s.drained(2 * time.Minute)
		s.enqueue(s.keys) // behind every repetition
		s.expectOnce(s.hear(b.consumer(t, s.name), 2*time.Minute))
	})
}

// TestZombie stops a busy relay for a minute, so in the middle of a call to the broker. Another one
// takes its shards and sends the rest. When the first one continues, none of its messages is stored.
func TestZombie(t *testing.T) {
	eachOnce(t, "stops a relay for a minute", 2*time.Second, func(t *testing.T, b server, s *scene, o relayOrder) {
		const count = 100_000
		s.enqueue(count)
		j := newJudge(-1)
		heard := s.listen(b.consumer(t, s.name), j)
		zombie := o.start(t)
		defer end(zombie, syscall.SIGKILL)
		j.await(t, count/20)
		_ = zombie.Process.Signal(syscall.SIGSTOP)
		stopped, sent := time.Now(), j.count()
		other := o.start(t)
		defer end(other, syscall.SIGKILL)
		j.await(t, count)
		t.Logf("the other relay sent the remaining %d messages within %v", count-sent, time.Since(stopped).Round(time.Millisecond))
		time.Sleep(time.Until(stopped.Add(time.Minute)))
		_ = zombie.Process.Signal(syscall.SIGCONT)
		time.Sleep(15 * time.Second)
		s.enqueue(s.keys) // behind every repetition
		j.await(t, count+s.keys)
		heard()
		s.expectOnce(j.outcome())
	})
}

// TestTakeover kills a relay that has sent 100,000 messages since it last settled. With the default
// lease, another one has recalled them and sent the rest 3 s after the lease's end.
func TestTakeover(t *testing.T) {
	eachOnce(t, "waits for the default lease", 10*time.Second, func(t *testing.T, b server, s *scene, o relayOrder) {
		const unsettled, rest = 100_000, 5_000
		s.enqueue(unsettled + rest)
		j := newJudge(-1)
		heard := s.listen(b.consumer(t, s.name), j)
		first := o.start(t)
		defer end(first, syscall.SIGKILL)
		j.await(t, 1)
		lock, err := s.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := lock.Exec(t.Context(), "LOCK TABLE "+pgx.Identifier{s.cfg.Schema, "checkpoints"}.Sanitize()); err != nil {
			t.Fatal(err)
		}
		settled := j.count()
		j.await(t, settled+unsettled)
		end(first, syscall.SIGKILL)
		killed := time.Now()
		if err := lock.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := o.start(t)
		defer end(other, syscall.SIGKILL)
		s.enqueue(s.keys) // behind every repetition
		j.await(t, unsettled+rest+s.keys)
		took := time.Since(killed)
		heard()
		t.Logf("%d had arrived before settling was stopped; all the rest %v after the kill", settled, took.Round(time.Millisecond))
		s.expectOnce(j.outcome())
		if took > o.Lease+3*time.Second {
			t.Errorf("the take-over lasted %v, with a lease of %v", took, o.Lease)
		}
	})
}
