package calls

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/idempotency"
)

// lease is how long a key stays locked by a killed server.
const lease = 5 * time.Second

func (c *caller) handler() (http.Handler, error) {
	keys, err := idempotency.New(c.db.IdempotencyKeys(), idempotency.Config{
		Scope: func(r *http.Request) (idempotency.Scope, error) {
			return idempotency.Scope{Tenant: "campaign", Principal: r.Header.Get("Client")}, nil
		},
		Required: true,
		Lease:    lease,
		Logger:   slog.New(slog.DiscardHandler), // the clients retry
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /"+handle, keys.Handle(c.transactor, serve(handle)))
	mux.Handle("POST /"+complete, keys.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer idempotency.Answer
		err := pgx.BeginFunc(r.Context(), c.pool, func(tx pgx.Tx) (err error) {
			if answer, err = serve(complete)(r.Context(), tx, r); err != nil {
				return err
			}
			return keys.Complete(r.Context(), tx, answer)
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer.Send(w)
	})))
	return mux, nil
}

// serve returns the handler of a request.
func serve(kind string) idempotency.Handler[pgx.Tx] {
	return func(ctx context.Context, tx pgx.Tx, r *http.Request) (idempotency.Answer, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return idempotency.Answer{}, err
		}
		n, err := strconv.ParseInt(string(body), 10, 64)
		if err != nil {
			return idempotency.Answer{}, &idempotency.Problem{Status: http.StatusBadRequest}
		}
		if err := take(ctx, tx, kind, r.Header.Get("Client"), n); err != nil {
			return idempotency.Answer{}, err
		}
		return idempotency.JSON(http.StatusCreated, n)
	}
}
