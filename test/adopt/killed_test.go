package adopt_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

const variable = "POSTRIDER_TEST_ADOPT_RELAY"

// stuckRelay is a relay process that publishes but never records the result.
type stuckRelay struct {
	Dialect table.Dialect
	Address string
	Preset  string
	Rabbit  string
	Queue   string
	Lease   time.Duration
}

func TestMain(m *testing.M) {
	if text := os.Getenv(oddVariable); text != "" {
		fmt.Fprintln(os.Stderr, "relay process:", runOddRelay(text))
		os.Exit(1)
	}
	if text := os.Getenv(variable); text != "" {
		var c stuckRelay
		err := json.Unmarshal([]byte(text), &c)
		if err == nil {
			err = c.run()
		}
		fmt.Fprintln(os.Stderr, "relay process:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func (c stuckRelay) run() error {
	db, err := sql.Open(driverOf(c.Dialect), c.Address)
	if err != nil {
		return err
	}
	p, _ := adopt.PresetNamed(c.Preset)
	p.Layout.DefaultTopic = c.Queue
	opened, err := table.Open(db, table.Config{Dialect: c.Dialect, Layout: p.Layout})
	if err != nil {
		return err
	}
	pub, err := rabbitmq.NewPublisher(rabbitmq.Config{URL: c.Rabbit, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	r, err := relay.New(opened.Feeds(), &stuck{pub}, relay.Config{Lease: c.Lease})
	if err != nil {
		return err
	}
	return r.Run(context.Background())
}

// driverOf returns the name of the dialect's database/sql driver.
func driverOf(d table.Dialect) string {
	if d == table.MySQL {
		return "mysql"
	}
	return "pgx"
}

// stuck is a publisher that never returns, so that what it has sent is not recorded.
type stuck struct{ postrider.Publisher }

func (s *stuck) Publish(ctx context.Context, msgs []postrider.Message) []error {
	s.Publisher.Publish(ctx, msgs)
	select {} // until the process is killed
}

// TestKilled kills a relay between publishing and recording. The messages are sent again, with the
// same IDs.
func TestKilled(t *testing.T) {
	for _, preset := range []string{"events-bigserial", "events-uuid"} { // one marks claimed rows, the other does not
		each(t, []described{named(t, preset)}, func(t *testing.T, d described, server tabletest.Server) {
			s := newScene(t, d, server)
			const messages = 10
			for n := range messages {
				if err := s.write(event{aggregate: fmt.Sprint(n), n: 1}, nil); err != nil {
					t.Fatal(err)
				}
			}
			order, err := json.Marshal(stuckRelay{
				Dialect: server.Dialect, Address: server.Address, Preset: preset, Rabbit: s.queue.url, Queue: s.queue.name, Lease: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), variable+"="+string(order))
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "the queue has all messages", func() bool { return s.queue.length() == messages })
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			first := s.queue.take()
			if n := s.count(d.published); n != 0 {
				t.Fatalf("%d rows were recorded before the kill: the test shows nothing", n)
			}
			s.start(s.queue.publisher(), relay.Config{Lease: time.Second})
			until(t, "every row says that it was published", func() bool { return s.count(d.published) == messages })
			again := s.queue.take()
			if a, b := ids(first), slices.Compact(ids(again)); !slices.Equal(a, b) { // without an answer in time, they come once more
				t.Errorf("first %v were sent, and after the kill %v", a, b)
			}
		})
	}
}

func ids(list []arrival) (ids []string) {
	for _, a := range list {
		ids = append(ids, a.id)
	}
	slices.Sort(ids)
	return ids
}
