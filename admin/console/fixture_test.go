package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// scene is a database with messages, and a console in front of it.
type scene struct {
	t       *testing.T
	db      console.Database
	store   feeds.Store
	enqueue func(msgs ...postrider.Message)
	url     string
	console *console.Console
	stop    func() // ends Run, and returns when it has ended
}

var tokens = map[auth.Role]string{
	auth.Viewer: "viewer-0123456789-0123456789", auth.Operator: "operator-0123456789-0123456789", auth.Admin: "admin-0123456789-0123456789",
}

func access() auth.Config {
	cfg := auth.Config{Rate: 1e6}
	for role, secret := range tokens {
		cfg.Tokens = append(cfg.Tokens, auth.Token{Name: "ann-" + string(role), Secret: secret, Role: role})
	}
	return cfg
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// inMemory is a scene without a server.
func inMemory(t *testing.T, change ...func(*console.Config)) *scene {
	store := memory.Open(memory.Config{Shards: 2})
	keys, sagas, reconcilers := store.IdempotencyKeys(), store.Sagas(), store.Reconciliations()
	s := &scene{t: t, store: store, enqueue: func(msgs ...postrider.Message) {
		t.Helper()
		err := store.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error { return store.Enqueue(ctx, tx, msgs...) })
		if err != nil {
			t.Fatal(err)
		}
	}}
	s.db = console.Database{
		Name: "main", DeadLetters: store, Feeds: store, Records: store, Log: store, Gauges: store, Problems: store, Keys: keys, Sagas: sagas, Reconcilers: reconcilers,
	}
	startSaga(t, sagas)
	claimKeys(t, keys)
	announce(t, reconcilers)
	s.serve(change)
	return s
}

// onPostgres is a scene in a schema of its own.
func onPostgres(t *testing.T, change ...func(*console.Config)) *scene {
	pool := pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 4})
	db := must(postgres.Open(pool, cfg))
	operator, outbox, sagas, reconcilers := db.Admin(), db.Outbox(), db.Sagas(), db.Reconciliations()
	s := &scene{t: t, store: db.Feeds(), enqueue: func(msgs ...postrider.Message) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return outbox.Enqueue(t.Context(), tx, msgs...) })
		if err != nil {
			t.Fatal(err)
		}
	}}
	s.db = console.Database{
		Name: "main", Schema: cfg.Schema, DeadLetters: operator, Feeds: operator, Records: operator, Log: operator, Gauges: operator, Problems: operator, Replays: operator,
		Keys: db.IdempotencyAdmin(), Sagas: db.SagaAdmin(), Reconcilers: reconcilers,
		RunReconciler: func(_ context.Context, _ admin.By, job string) (reconcile.Counts, error) {
			if job == "held" {
				return reconcile.Counts{}, &reconcile.NotYetError{Job: job, Holder: "another"}
			}
			return reconcile.Counts{Found: 3, Fixed: 2}, nil
		},
		Doctor: func(context.Context) ([]console.Finding, error) {
			return []console.Finding{{Check: "clock", Severity: "ok", Finding: "postgres://ann:geheim@db is in time"}}, nil
		},
	}
	startSaga(t, sagas)
	claimKeys(t, db.IdempotencyKeys())
	announce(t, reconcilers)
	s.serve(change)
	return s
}

func (s *scene) serve(change []func(*console.Config)) {
	cfg := console.Config{
		Databases: []console.Database{s.db}, Access: access(), Prefix: "/ops", Redact: []string{"$.card"},
		TraceURL: "https://traces.example.com/{trace_id}", Version: "test", Sample: time.Second, Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	s.console = must(console.New(cfg))
	server := httptest.NewServer(s.console)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.console.Run(ctx)
	}()
	s.stop = func() {
		stop()
		<-ended
	}
	s.t.Cleanup(func() {
		s.stop()
		server.Close()
	})
	s.url = server.URL + "/ops"
}

// sagas with one step that fails for ever, and so wait for somebody.
func startSaga[Tx any](t *testing.T, store interface {
	saga.Store[Tx]
	Do(context.Context, func(context.Context, Tx) error) error
}) {
	t.Helper()
	fine := func(context.Context, Tx, *map[string]any) error { return nil }
	book, err := saga.New(store, "book-trip", saga.Step("hotel", fine, fine),
		saga.Wait("approval", func(context.Context, Tx, *map[string]any, bool) error { return nil }, nil))
	if err != nil {
		t.Fatal(err)
	}
	err = store.Do(t.Context(), func(ctx context.Context, tx Tx) error {
		for i := range 3 {
			data := map[string]any{"city": "Lisbon", "card": "4111 1111"}
			if err := book.Start(ctx, tx, fmt.Sprintf("trip/%d", i), data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func claimKeys(t *testing.T, keys interface {
	Claim(context.Context, idempotency.Claim) (idempotency.Outcome, error)
}) {
	t.Helper()
	for i := range 5 {
		claim := idempotency.Claim{ID: idempotency.ID{Route: "POST /orders", Key: fmt.Sprint("key-", i)}, Token: fmt.Sprint("token-", i), Lease: time.Minute, Retention: time.Hour}
		if _, err := keys.Claim(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
}

func announce(t *testing.T, reconcilers interface {
	Announce(context.Context, string, string, func(time.Time) time.Time) error
}) {
	t.Helper()
	for _, job := range []string{"orders", "held"} {
		if err := reconcilers.Announce(t.Context(), job, "every 1h", func(now time.Time) time.Time { return now.Add(time.Hour) }); err != nil {
			t.Fatal(err)
		}
	}
}

// raw sends a request as somebody.
func (s *scene) raw(role auth.Role, method, path string, body any) (int, []byte) {
	s.t.Helper()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(must(json.Marshal(body)))
	}
	r := must(http.NewRequestWithContext(s.t.Context(), method, s.url+"/api/v1"+path, reader))
	if role != "" {
		r.Header.Set("Authorization", "Bearer "+tokens[role])
	}
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode, must(io.ReadAll(answer.Body))
}

// wants sends a request that has to succeed, and reads the answer into out, if that is not nil.
func (s *scene) wants(role auth.Role, method, path string, body, out any) {
	s.t.Helper()
	status, text := s.raw(role, method, path, body)
	if status != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
}

type dict = map[string]any
