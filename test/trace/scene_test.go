package trace_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// service is one process from the backend's point of view.
type service struct {
	name     string
	provider *sdktrace.TracerProvider
	observer *otel.Observer
	tracer   trace.Tracer
}

// scene is a shop that takes orders, a relay, a service that charges for them, and one that sends
// mail.
type scene struct {
	t       *testing.T
	b       *backend
	pool    *pgxpool.Pool
	cfg     postgres.Config
	db      *postgres.DB
	orders  string // topics at the broker
	charges string

	shop, carrier, billing, mailer *service
	blind                          bool         // the shop's outbox is not observed
	failures                       atomic.Int32 // of billing's handler, before it succeeds
}

// Secrets that no span may contain.
const (
	secretPayload = "canary-in-the-payload"
	secretHeader  = "canary-in-a-header"
	secretOrder   = "canary-in-the-key"
)

func newScene(t *testing.T, broker server) *scene {
	t.Helper()
	s := &scene{t: t, b: newBackend(t), orders: broker.create(t, "orders"), charges: broker.create(t, "charges")}
	s.pool = pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	s.cfg = pgtest.Schema(t, s.pool, postgres.Layout{})
	for name, into := range map[string]**service{"shop": &s.shop, "relay": &s.carrier, "billing": &s.billing, "mailer": &s.mailer} {
		*into = s.service(name, broker.driver)
	}
	var err error
	if s.db, err = postgres.Open(s.pool, s.cfg); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"orders", "charged", "mails"} {
		if _, err := s.pool.Exec(t.Context(), "CREATE TABLE "+s.table(table)+" (id text PRIMARY KEY, trace text)"); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *scene) service(name, system string) *service {
	s.t.Helper()
	p := s.b.provider(s.t, name)
	o, err := otel.New(otel.Config{TracerProvider: p, System: system})
	if err != nil {
		s.t.Fatal(err)
	}
	return &service{name, p, o, p.Tracer(name)}
}

func (s *scene) table(name string) string { return pgx.Identifier{s.cfg.Schema, name}.Sanitize() }

// write performs a business write in a span of the service, and records the trace that it belongs
// to.
func (s *scene) write(ctx context.Context, by *service, tx pgx.Tx, table, id string) error {
	ctx, span := by.tracer.Start(ctx, "INSERT "+table, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	_, err := tx.Exec(ctx, "INSERT INTO "+s.table(table)+" VALUES ($1, $2)", id, span.SpanContext().TraceID().String())
	return err
}

func (s *scene) message(kind, id, topic string) postrider.Message {
	m := postrider.Event(kind, postrider.Aggregate{Type: "order", ID: id}, []byte(secretPayload))
	m.Topic, m.CorrelationID = topic, "checkout"
	m.Headers = map[string]string{"authorization": secretHeader}
	return m
}

// place is the shop's handler of POST /orders: the order and its message commit together.
func (s *scene) place(w http.ResponseWriter, r *http.Request) {
	ctx, span := s.shop.tracer.Start(r.Context(), "POST /orders", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	outbox := postrider.Outbox[pgx.Tx](s.db.Outbox())
	if !s.blind {
		outbox = postrider.ObserveOutbox(outbox, s.shop.observer)
	}
	id := r.URL.Query().Get("id")
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := s.write(ctx, s.shop, tx, "orders", id); err != nil {
			return err
		}
		return outbox.Enqueue(ctx, tx, s.message("order.placed", id, s.orders))
	})
	if err != nil {
		http.Error(w, "not placed", http.StatusInternalServerError)
	}
}

// charge is billing's handler. It enqueues another message.
func (s *scene) charge(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
	if m.AggregateID == secretOrder && s.failures.Add(-1) >= 0 {
		return fmt.Errorf("no luck with %s", m.Payload)
	}
	if err := s.write(ctx, s.billing, tx, "charged", m.AggregateID); err != nil {
		return err
	}
	return postrider.ObserveOutbox(s.db.Outbox(), s.billing.observer).Enqueue(ctx, tx, s.message("order.charged", m.AggregateID, s.charges))
}

// mail is the mailer's handler.
func (s *scene) mail(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
	return s.write(ctx, s.mailer, tx, "mails", m.AggregateID)
}

// run places an order and returns the spans of everything that it caused. An earlier order makes
// sure that all services are running, so that the times are meaningful.
func (s *scene) run(on server) []span {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var run sync.WaitGroup
	for _, c := range []struct {
		*service
		topic, kind string
		handle      inbox.Handler[pgx.Tx]
	}{{s.billing, s.orders, "order.placed", s.charge}, {s.mailer, s.charges, "order.charged", s.mail}} {
		in, err := inbox.New(s.db.Inbox(), c.name, inbox.Config{Observer: c.observer, Logger: logger(s.t), Retry: retry.Policy{Pauses: []time.Duration{time.Millisecond}}})
		if err != nil {
			s.t.Fatal(err)
		}
		in.Handle(c.kind, c.handle)
		consumer := on.consumer(s.t, c.topic, c.name)
		run.Go(func() {
			if err := in.Run(ctx, consumer); err != nil {
				s.t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	publisher := broker.ObservePublisher("default", on.publisher(s.t), s.carrier.observer)
	r, err := relay.New(s.db.Feeds(), publisher, relay.Config{Logger: logger(s.t)})
	if err != nil {
		s.t.Fatal(err)
	}
	run.Go(func() {
		if err := r.Run(ctx); err != nil {
			s.t.Errorf("relay: %v", err)
		}
	})
	web := httptest.NewServer(http.HandlerFunc(s.place))
	defer web.Close()
	for _, id := range []string{"warm-up", secretOrder} {
		s.order(web.URL+"/orders?id="+id, id)
	}
	cancel()
	run.Wait()
	return s.b.received(s.t, s.shop, s.carrier, s.billing, s.mailer)
}

// order places an order and waits for the mail about it.
func (s *scene) order(url, id string) {
	s.t.Helper()
	answer, err := http.Post(url, "", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("the shop says %s", answer.Status)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for s.traceOf("mails", id) == "" {
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatal("no mail was written within a minute")
		}
	}
}

// traceOf returns the trace in which a row was written, or "" if there is no such row.
func (s *scene) traceOf(table, id string) string {
	s.t.Helper()
	var found string
	err := s.pool.QueryRow(s.t.Context(), "SELECT coalesce((SELECT trace FROM "+s.table(table)+" WHERE id = $1), '')", id).Scan(&found)
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}
