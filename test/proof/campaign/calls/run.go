package calls

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/transactor"
)

// Settings configures a process with clients and a server.
type Settings struct {
	Name    string   // of the process
	DSN     string   // of the database
	Dir     string   // for the clients' records of responses
	Address string   // listen address of its server
	Servers []string // addresses of all servers, including its own
	Rate    float64  // calls of each kind per second
}

// callTimeout bounds a call. The outcome of an abandoned call does not matter.
const callTimeout = 90 * time.Second

// atOnce limits how many calls wait for a response while the database is down.
const atOnce = 24

// caller is one run of a process.
type caller struct {
	Settings
	client     string // unique to this run
	pool       *pgxpool.Pool
	db         *postgres.DB
	transactor postrider.Transactor[pgx.Tx]
	http       http.Client
	told       *told
	log        *slog.Logger
}

// Run serves and calls until ctx ends.
func Run(ctx context.Context, s Settings) error {
	config, err := pgxpool.ParseConfig(s.DSN)
	if err != nil {
		return err
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	c := &caller{Settings: s, pool: pool, client: s.Name + "." + strconv.FormatInt(time.Now().UnixNano(), 36)}
	c.log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("client", c.client)
	c.http.Timeout = 20 * time.Second
	c.db, err = postgres.Open(pool, postgres.Config{Transactor: transactor.Config{ResolveTimeout: 10 * time.Second}})
	if err != nil {
		return err
	}
	c.transactor = c.db.Transactor()
	if c.told, err = tell(s.Dir, c.client); err != nil {
		return err
	}
	defer c.told.close()

	handler, err := c.handler()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.Address)
	if err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	var clients sync.WaitGroup
	for _, kind := range []string{commit, handle, complete} {
		clients.Go(func() { c.repeat(ctx, kind) })
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		clients.Wait()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
		defer cancel()
		_ = server.Shutdown(last)
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	<-ended
	return nil
}

// repeat makes one call after another, at the rate of the settings.
func (c *caller) repeat(ctx context.Context, kind string) {
	var calls sync.WaitGroup
	defer calls.Wait()
	waiting := make(chan struct{}, atOnce)
	for n := int64(1); ; n++ {
		pause := time.Duration(rand.ExpFloat64() / c.Rate * float64(time.Second))
		select {
		case <-time.After(min(pause, 10*time.Second)):
		case <-ctx.Done():
			return
		}
		waiting <- struct{}{}
		calls.Go(func() {
			defer func() { <-waiting }()
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			if kind == commit {
				c.commit(ctx, n)
			} else {
				c.volley(ctx, kind, n)
			}
		})
	}
}

// soon waits a moment before the next attempt, and reports whether there should be one.
func soon(ctx context.Context) bool {
	select {
	case <-time.After(rand.N(100 * time.Millisecond)):
		return true
	case <-ctx.Done():
		return false
	}
}
