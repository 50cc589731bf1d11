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

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

const (
	relayVariable = "POSTRIDER_TEST_RELAY_PROCESS"
	relayLease    = 2 * time.Second
)

// relayOrder configures a relay process.
type relayOrder struct {
	Driver, URL, DSN, Schema string
	Values                   map[string]string
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
	r, err := relay.New(db.Feeds(), pub, relay.Config{Lease: relayLease, BatchSize: 50, Logger: log})
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

// TestOnce kills relays in the middle of their work, and stops others for longer than their lease,
// who then go on where they were: everything arrives in order, and exactly once.
func TestOnce(t *testing.T) {
	for _, b := range servers {
		if !b.once && !b.onceOption {
			continue
		}
		t.Run(b.driver, func(t *testing.T) {
			need.Long(t, "kills and stops relays for 20 seconds")
			need.Env(t, b.variable, b.service)
			dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
			s := newScene(t, dsn, b.create(t), 100)
			settings := b.sending(t, s.name)
			if b.onceOption {
				settings.Values["once"] = "true"
			}
			o := relayOrder{Driver: b.driver, URL: settings.URL, Values: settings.Values, DSN: dsn, Schema: s.cfg.Schema}
			relays := []*exec.Cmd{o.start(t), o.start(t)}
			end := func(r *exec.Cmd, with syscall.Signal) {
				_ = r.Process.Signal(syscall.SIGCONT)
				_ = r.Process.Signal(with)
				_ = r.Wait()
			}
			t.Cleanup(func() {
				for _, r := range relays {
					end(r, syscall.SIGKILL)
				}
			})
			random := rand.New(rand.NewPCG(3, 4))
			written := s.steady(3000)
			for fault := range pick(6, 60) {
				time.Sleep(relayLease/2 + time.Duration(random.IntN(1000))*time.Millisecond)
				victim := random.IntN(2)
				if fault%3 == 2 {
					_ = relays[victim].Process.Signal(syscall.SIGSTOP)
					time.Sleep(relayLease * 2)
					_ = relays[victim].Process.Signal(syscall.SIGCONT)
					continue
				}
				end(relays[victim], syscall.SIGKILL)
				relays[victim] = o.start(t)
			}
			written()
			s.drained(2 * time.Minute)
			s.enqueue(s.keys) // behind every repetition
			v := s.hear(b.consumer(t, s.name), 2*time.Minute)
			s.expect(v, true)
			if v.received != v.distinct {
				t.Errorf("%d repetitions", v.received-v.distinct)
			}
		})
	}
}
