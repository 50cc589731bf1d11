package idempotency_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestOrders tests an application with database/sql behind a pooler. The order, its message and the
// response are committed together, in both forms.
func TestOrders(t *testing.T) {
	pgtest.EachPooled(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{})
		sqlDB := stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { sqlDB.Close() })
		db, err := postgres.OpenSQL(sqlDB, cfg)
		if err != nil {
			t.Fatal(err)
		}
		transactor, outbox := db.Transactor(), db.Outbox()
		keys, err := idempotency.New(db.IdempotencyKeys(), idempotency.Config{
			Scope: func(r *http.Request) (idempotency.Scope, error) { return idempotency.Scope{Principal: "ann"}, nil },
			Wait:  20 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		place := func(ctx context.Context, tx *sql.Tx, r *http.Request) (idempotency.Answer, error) {
			m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: r.Header.Get("Idempotency-Key")}, nil)
			m.ID = postrider.NewID()
			if err := outbox.Enqueue(ctx, tx, m); err != nil {
				return idempotency.Answer{}, err
			}
			return idempotency.JSON(http.StatusCreated, m.ID)
		}
		mux := http.NewServeMux()
		mux.Handle("POST /whole", keys.Handle(transactor, place))
		mux.Handle("POST /complete", keys.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var answer idempotency.Answer
			err := transactor.Do(r.Context(), func(ctx context.Context, tx *sql.Tx) (err error) {
				if answer, err = place(ctx, tx, r); err != nil {
					return err
				}
				return keys.Complete(ctx, tx, answer)
			})
			if err != nil {
				t.Error(err)
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			answer.Send(w)
		})))
		server := httptest.NewServer(mux)
		defer server.Close()

		const orders, times = 8, 8
		var mu sync.Mutex
		answers := make(map[string]string) // by path and key
		var group sync.WaitGroup
		for i := range orders * times {
			group.Go(func() {
				path, key := []string{"/whole", "/complete"}[i%2], fmt.Sprint(i%orders)
				r, _ := http.NewRequest("POST", server.URL+path, strings.NewReader("{}"))
				r.Header.Set("Idempotency-Key", key)
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				mu.Lock()
				defer mu.Unlock()
				if known := answers[path+key]; err != nil || response.StatusCode != http.StatusCreated || known != "" && known != string(body) {
					t.Errorf("%d %s, %v; and before %s", response.StatusCode, body, err, known)
				}
				answers[path+key] = string(body)
			})
		}
		group.Wait()
		told := make(map[string]bool)
		for _, answer := range answers {
			told[strings.Trim(answer, `"`)] = true
		}
		rows, err := sqlDB.QueryContext(t.Context(), fmt.Sprintf("SELECT id::text FROM %q.messages", cfg.Schema))
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		messages := 0
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil || !told[id] {
				t.Errorf("message %s, and nobody was told, %v", id, err)
			}
			messages++
		}
		if err := rows.Err(); err != nil || messages != orders {
			t.Errorf("%d messages of %d orders, %v", messages, orders, err)
		}
	})
}
