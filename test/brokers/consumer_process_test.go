package brokers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/postgres"
)

const processVariable = "POSTRIDER_TEST_CONSUMER_PROCESS"

// order configures a consumer process.
type order struct {
	Driver, URL, DSN, Schema string
	Values                   map[string]string
	Batch                    bool
	Foreign                  []order // brokers with messages of other senders, instead of Driver
	Record                   string  // a file: the process records calls of the handler there, and needs no database
}

// TestMain runs a consumer or a relay process if the test binary was started as one.
func TestMain(m *testing.M) {
	if text := os.Getenv(relayVariable); text != "" {
		if err := serveRelay(text); err != nil {
			fmt.Fprintln(os.Stderr, "relay process:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if text := os.Getenv(processVariable); text != "" {
		var o order
		err := json.Unmarshal([]byte(text), &o)
		switch {
		case err != nil:
		case o.Record != "":
			err = o.record()
		default:
			err = o.consume()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "consumer process:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// apply is the effect of a message: it updates an account's balance and a count, and records
// whether the message arrived after a later one. A message that takes effect twice makes the sums
// wrong.
const apply = `UPDATE @schema@.accounts SET n = n + 1, sum = sum + $2, disorder = disorder + ($2 <= last)::int, last = $2 WHERE id = $1`

// consume runs a consumer process, which prints its number of deliveries to standard output.
func (o order) consume() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	pool, err := pgxpool.New(ctx, o.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := postgres.Open(pool, postgres.Config{Schema: o.Schema})
	if err != nil {
		return err
	}
	in, err := inbox.New(db.Inbox(), "accounts", inbox.Config{Logger: quiet})
	if err != nil {
		return err
	}
	statement := strings.ReplaceAll(apply, "@schema@", pgx.Identifier{o.Schema}.Sanitize())
	effect := func(m postrider.Message) (account, amount int) {
		account, _ = strconv.Atoi(m.AggregateID)
		amount, _ = strconv.Atoi(string(m.Payload))
		return account, amount
	}
	if o.Batch {
		in.HandleBatch("*", func(ctx context.Context, tx pgx.Tx, msgs []postrider.Message) error {
			var b pgx.Batch
			for _, m := range msgs {
				account, amount := effect(m)
				b.Queue(statement, account, amount)
			}
			return tx.SendBatch(ctx, &b).Close()
		})
	} else {
		in.Handle("parcel.moved", func(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
			account, amount := effect(m)
			_, err := tx.Exec(ctx, statement, account, amount)
			return err
		})
	}
	sources := []order{o}
	if o.Foreign != nil {
		sources = o.Foreign
		in.Handle("*", o.note)
	}
	var consumers []postrider.Consumer
	for _, source := range sources {
		driver, err := broker.Lookup(source.Driver)
		if err != nil {
			return err
		}
		c, err := driver.Subscribe(&broker.Settings{URL: source.URL, Values: source.Values, Logger: quiet})
		if err != nil {
			return err
		}
		defer c.Close()
		consumers = append(consumers, c)
	}
	var deliveries atomic.Int64
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			fmt.Println(deliveries.Load())
		}
	}()
	for i, c := range consumers {
		consumers[i] = counted{c, &deliveries}
	}
	return in.Run(ctx, consumers...)
}

// note is the effect of another sender's message: it counts how often the message was handled.
func (o order) note(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
	var f foreign
	if err := json.Unmarshal(m.Payload, &f); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO "+pgx.Identifier{o.Schema, "effects"}.Sanitize()+
		" AS e VALUES ($1, $2, 1) ON CONFLICT (sender, n) DO UPDATE SET times = e.times + 1", f.Sender, f.N)
	return err
}

// counted counts deliveries.
type counted struct {
	postrider.Consumer
	n *atomic.Int64
}

func (c counted) Consume(ctx context.Context, handle postrider.Handler) error {
	return c.Consumer.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		c.n.Add(1)
		return handle(ctx, m)
	})
}

// process is a running consumer process.
type process struct {
	cmd        *exec.Cmd
	deliveries atomic.Int64
	ended      chan struct{}
}

func (o order) start(t *testing.T) *process {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), processVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				p.deliveries.Store(n)
			}
		}
		_ = p.cmd.Wait() // killed or stopped on purpose
	}()
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// end ends the process and returns the number of deliveries that it has reported.
func (p *process) end(s syscall.Signal) int64 {
	_ = p.cmd.Process.Signal(s)
	<-p.ended
	return p.deliveries.Load()
}
