package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/postgres"
)

// service is the part that applicants and the payment provider talk to.
type service struct {
	pool    *pgxpool.Pool
	set     settings
	outbox  *postgres.Outbox
	keys    *idempotency.Keys[pgx.Tx]
	webhook *webhookReceiver
	handler http.Handler
}

func newService(pool *pgxpool.Pool, set settings) (*service, error) {
	s := &service{pool: pool, set: set}
	var err error
	if s.outbox, err = postgres.NewOutbox(postgres.OutboxConfig{}); err != nil {
		return nil, err
	}
	transactor, err := postgres.NewTransactor(pool, postgres.TransactorConfig{})
	if err != nil {
		return nil, err
	}
	store, err := postgres.NewIdempotency(pool, postgres.Config{})
	if err != nil {
		return nil, err
	}
	s.keys, err = idempotency.New(store, idempotency.Config{
		Scope:    idempotency.Public, // applicants have no accounts
		Required: true,
		MaxBody:  maxForm,
		Keep:     keepAccepted,
	})
	if err != nil {
		return nil, err
	}
	if s.webhook, err = newWebhookReceiver(pool, set); err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.formPage)
	mux.Handle("POST /applications", s.keys.Handle(transactor, s.apply))
	mux.HandleFunc("GET /applications/{id}", s.statusPage)
	mux.HandleFunc("GET /applications/{id}/status", s.status)
	mux.Handle("POST /webhooks/{name}", s.webhook)
	mux.HandleFunc("GET /healthz", s.health)
	mux.Handle("GET /assets/", assets)
	s.handler = withSafeHeaders(mux)
	return s, nil
}

func serve(ctx context.Context, pool *pgxpool.Pool, set settings) error {
	s, err := newService(pool, set)
	if err != nil {
		return err
	}
	return together(ctx, s.webhook.Run,
		func(ctx context.Context) error { return listen(ctx, set.listen, s.handler) })
}

// status answers what the page of an application asks for twice a second.
func (s *service) status(w http.ResponseWriter, r *http.Request) {
	a, ok := s.find(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(w).Encode(struct {
		ID          string `json:"id"`
		Status      string `json:"status"`
		Progress    int    `json:"progress"`
		Steps       []step `json:"steps"`
		PayURL      string `json:"payUrl"`
		DeclinedFor string `json:"declinedFor,omitempty"`
	}{a.ID, a.Status(), a.Progress(), a.Steps(), s.payURL(a.ID), a.DeclinedFor})
	if err != nil {
		slog.Warn("status not sent", "err", err)
	}
}

// find returns the application that the path names, or answers that there is none.
func (s *service) find(w http.ResponseWriter, r *http.Request) (application, bool) {
	id, err := postrider.ParseID(r.PathValue("id"))
	if err != nil {
		http.Error(w, "There is no such application.", http.StatusNotFound)
		return application{}, false
	}
	a, err := loadApplication(r.Context(), s.pool, id.String())
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		http.Error(w, "There is no such application.", http.StatusNotFound)
	case err != nil:
		slog.Error("application not read", "err", err)
		http.Error(w, "The service cannot reach its database. Try again in a moment.", http.StatusServiceUnavailable)
	}
	return a, err == nil
}

func (s *service) health(w http.ResponseWriter, r *http.Request) {
	if err := s.pool.Ping(r.Context()); err != nil {
		http.Error(w, "no database", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

func (s *service) payURL(id string) string { return s.set.paydeskURL + "/pay/" + id }
