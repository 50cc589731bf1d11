// Package idempotency_test kills servers that handle requests with idempotency keys.
package idempotency_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/postgres"
)

const variable = "POSTRIDER_TEST_IDEMPOTENCY_SERVER"

func TestMain(m *testing.M) {
	if text := os.Getenv(variable); text != "" {
		err := serve(text)
		fmt.Fprintln(os.Stderr, "server process:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// settings configures a server process.
type settings struct {
	DSN, Schema string
	Lease       time.Duration
	Slow        time.Duration // maximum time between two steps of a handler
	Crash       float64       // probability that the process kills itself after a handler's commit and before its response
}

// effect is the work of a handler, and its response.
type effect struct {
	ID        int64  `json:"id"`
	Principal string `json:"principal"`
	Key       string `json:"key"`
	Body      string `json:"body"`
}

const businessTable = `CREATE TABLE %q.effects (
	id bigint GENERATED ALWAYS AS IDENTITY, principal text, route text, key text, body text)`

// serve serves on the socket that was passed as file 3, until it is killed.
func serve(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(s.DSN)
	if err != nil {
		return err
	}
	config.MaxConns = 24
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return err
	}
	db, err := postgres.Open(pool, postgres.Config{Schema: s.Schema})
	if err != nil {
		return err
	}
	keys, err := idempotency.New(db.IdempotencyKeys(), idempotency.Config{
		Scope: func(r *http.Request) (idempotency.Scope, error) {
			return idempotency.Scope{Tenant: "acme", Principal: r.Header.Get("Principal")}, nil
		},
		Required: true,
		Lease:    s.Lease,
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	pause := func() { time.Sleep(rand.N(s.Slow)) }
	work := func(ctx context.Context, tx pgx.Tx, r *http.Request) (idempotency.Answer, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return idempotency.Answer{}, err
		}
		e := effect{Principal: r.Header.Get("Principal"), Key: r.Header.Get("Idempotency-Key"), Body: string(body)}
		pause()
		err = tx.QueryRow(ctx, fmt.Sprintf(`INSERT INTO %q.effects (principal, route, key, body) VALUES ($1, $2, $3, $4) RETURNING id`, s.Schema),
			e.Principal, r.URL.Path, e.Key, e.Body).Scan(&e.ID)
		if err != nil {
			return idempotency.Answer{}, err
		}
		pause()
		answer, err := idempotency.JSON(http.StatusCreated, e)
		return answer.With("Location", fmt.Sprint("/effects/", e.ID)), err
	}
	// own returns a handler that uses its own transaction, with or without Complete in it.
	own := func(complete func(context.Context, pgx.Tx, idempotency.Answer) error) http.Handler {
		return keys.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var answer idempotency.Answer
			err := pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) (err error) {
				if answer, err = work(r.Context(), tx, r); err != nil {
					return err
				}
				return complete(r.Context(), tx, answer)
			})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			if rand.Float64() < s.Crash {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			pause()
			answer.Send(w)
		}))
	}
	mux := http.NewServeMux()
	mux.Handle("POST /whole", keys.Handle(db.Transactor(), work))
	mux.Handle("POST /complete", own(keys.Complete))
	mux.Handle("POST /plain", own(func(context.Context, pgx.Tx, idempotency.Answer) error { return nil }))
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	if err := pool.Ping(context.Background()); err != nil {
		return err
	}
	fmt.Println("ready")
	return http.Serve(listener, mux)
}
