package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/postgres"
)

// service serves the applicants and the payment provider.
type service struct {
	pool    *pgxpool.Pool
	set     settings
	outbox  *postgres.Outbox
	keys    *idempotency.Keys[pgx.Tx]
	webhook *webhookReceiver
	handler http.Handler
}

func newService(pool *pgxpool.Pool, db *postgres.DB, set settings) (*service, error) {
	s := &service{pool: pool, set: set, outbox: db.Outbox()}
	var err error
	s.keys, err = idempotency.New(db.IdempotencyKeys(), idempotency.Config{
		Scope:    idempotency.Public, // applicants have no accounts
		Required: true,
		MaxBody:  maxForm,
		Keep:     keepAccepted,
	})
	if err != nil {
		return nil, err
	}
	if s.webhook, err = newWebhookReceiver(db, set); err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.formPage)
	mux.Handle("POST /applications", s.keys.Handle(db.Transactor(), s.apply))
	mux.HandleFunc("GET /applications/{id}/status", s.status)
	mux.HandleFunc("GET /payments/checkout/{id}", s.checkout)
	mux.Handle("POST /webhooks/{name}", s.webhook)
	mux.HandleFunc("GET /healthz", s.health)
	mux.Handle("GET /assets/", assets)
	s.handler = withSafeHeaders(mux)
	return s, nil
}

func serve(ctx context.Context, pool *pgxpool.Pool, db *postgres.DB, set settings) error {
	s, err := newService(pool, db, set)
	if err != nil {
		return err
	}
	return together(ctx, s.webhook.Run,
		func(ctx context.Context) error { return listen(ctx, set.listen, s.handler) })
}

// status returns the progress of an application: a page for browsers, and JSON for programs. The
// page polls the JSON twice a second.
func (s *service) status(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept") // otherwise the back button may show the JSON
	a, ok := s.find(w, r)
	if !ok {
		return
	}
	if wantsPage(r) {
		show(w, statusTemplate, a)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(w).Encode(struct {
		ID          string `json:"applicationId"`
		Status      string `json:"status"`
		Progress    int    `json:"progress"`
		Steps       []step `json:"steps"`
		PayURL      string `json:"payUrl"`
		DeclinedFor string `json:"declinedFor,omitempty"`
	}{a.ID, a.Status(), a.Progress(), a.Steps(), a.PayURL(), a.DeclinedFor})
	if err != nil {
		slog.Warn("status not sent", "err", err)
	}
}

// wantsPage reports whether the request prefers HTML to JSON, as browsers do. A request that names
// neither gets JSON.
func wantsPage(r *http.Request) bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		switch kind, _, _ := strings.Cut(accepted, ";"); strings.TrimSpace(kind) {
		case "text/html":
			return true
		case "application/json":
			return false
		}
	}
	return false
}

// checkout redirects an applicant who wants to pay to the payment provider.
func (s *service) checkout(w http.ResponseWriter, r *http.Request) {
	if a, ok := s.find(w, r); ok {
		http.Redirect(w, r, s.set.paydeskURL+"/pay/"+a.ID, http.StatusSeeOther)
	}
}

// find returns the application in the path, or responds with 404.
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

// statusPath and payPath return the paths of an application on this server.
func statusPath(id string) string { return "/applications/" + id + "/status" }
func payPath(id string) string    { return "/payments/checkout/" + id }
