// Package paydesk simulates a payment provider: another company with its own tables. It is told to
// expect a payment, and reports the result by webhook. As real providers do at times, it sends
// everything twice.
package paydesk

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/broker/webhook/signature"
)

// Schema is the SQL that creates the tables.
//
//go:embed schema.sql
var Schema string

//go:embed pay.html
var pageSource string

//go:embed paydesk.css
var style []byte

var page = template.Must(template.New("pay").Parse(pageSource))

// Config describes the provider's customer.
type Config struct {
	Secret     string // shared secret, "whsec_…": signs webhooks, and authenticates API requests
	WebhookURL string // URL of the customer's webhooks
	ReturnURL  string // where payers return to; {application} stands for its ID
}

// Desk is the provider: an [http.Handler] with the API and the page, and a loop that sends
// webhooks.
type Desk struct {
	http.Handler
	pool   *pgxpool.Pool
	config Config
	signer *signature.Signer
	news   chan struct{} // signals a webhook to send
}

// New returns a desk, or an error if its configuration is invalid.
func New(pool *pgxpool.Pool, config Config) (*Desk, error) {
	signer, err := signature.NewSigner(config.Secret)
	if err != nil {
		return nil, err
	}
	d := &Desk{pool: pool, config: config, signer: signer, news: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pay/{application}", d.show)
	mux.HandleFunc("POST /pay/{application}", d.decide)
	mux.HandleFunc("POST /api/payments", d.api(d.create))
	mux.HandleFunc("POST /api/payments/{id}/cancel", d.api(d.cancel))
	mux.HandleFunc("GET /paydesk.css", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(style)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	d.Handler = mux
	return d, nil
}

// api authenticates the customer and encodes the result of a function as the response.
func (d *Desk) api(f func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given := []byte(r.Header.Get("Authorization"))
		if subtle.ConstantTimeCompare(given, []byte("Bearer "+d.config.Secret)) != 1 {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		answer, err := f(r)
		switch {
		case errors.Is(err, errRequest):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			slog.Error("paydesk: request failed", "path", r.URL.Path, "err", err)
			http.Error(w, "try again later", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
		}
	}
}

var errRequest = errors.New("want an Idempotency-Key, and application and cents as JSON")

// create creates a payment, or returns the one that was created with the same key.
func (d *Desk) create(r *http.Request) (any, error) {
	var in struct {
		Application string `json:"application"`
		Cents       int    `json:"cents"`
	}
	key := r.Header.Get("Idempotency-Key")
	err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 64<<10)).Decode(&in)
	if err != nil || key == "" || in.Application == "" || in.Cents <= 0 {
		return nil, errRequest
	}
	var out struct {
		ID string `json:"id"`
	}
	err = d.pool.QueryRow(r.Context(), `
		INSERT INTO paydesk.payments (id, key, application, cents) VALUES ($1, $2, $3, $4)
		ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING id`, // so that RETURNING returns an existing row
		"pay_"+rand.Text(), key, in.Application, in.Cents).Scan(&out.ID)
	return out, err
}

// cancel cancels a payment, by its own ID or that of the application, and refunds it if it was
// paid. The payment need not exist.
func (d *Desk) cancel(r *http.Request) (any, error) {
	_, err := d.pool.Exec(r.Context(), `
		UPDATE paydesk.payments SET status = CASE status WHEN 'due' THEN 'cancelled' ELSE 'refunded' END
		WHERE $1 IN (id, application) AND status IN ('due', 'succeeded')`, r.PathValue("id"))
	return struct{}{}, err
}

// payment is the data of the page.
type payment struct {
	ID          string
	Application string
	Cents       int
	Status      string // "preparing" until the customer has created it
	ReturnURL   string
}

// Euros and Rest are the amount in euros and cents.
func (p payment) Euros() int { return p.Cents / 100 }
func (p payment) Rest() int  { return p.Cents % 100 }

func (d *Desk) show(w http.ResponseWriter, r *http.Request) {
	p := payment{Application: r.PathValue("application"), Status: "preparing"}
	p.ReturnURL = strings.ReplaceAll(d.config.ReturnURL, "{application}", p.Application)
	err := d.pool.QueryRow(r.Context(), "SELECT id, cents, status FROM paydesk.payments WHERE application = $1", p.Application).
		Scan(&p.ID, &p.Cents, &p.Status)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		slog.Error("paydesk: payment not read", "err", err)
		http.Error(w, "The pay desk is closed for a moment.", http.StatusServiceUnavailable)
		return
	}
	if p.Status == "preparing" {
		w.Header().Set("Refresh", "1")
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	if err := page.Execute(w, p); err != nil {
		slog.Warn("paydesk: page not sent", "err", err)
	}
}

// decide records the payer's decision, and a webhook about it. Only the first decision counts.
func (d *Desk) decide(w http.ResponseWriter, r *http.Request) {
	application, status, event := r.PathValue("application"), "succeeded", "payment.succeeded"
	if r.FormValue("action") == "decline" {
		status, event = "declined", "payment.declined"
	}
	err := pgx.BeginFunc(r.Context(), d.pool, func(tx pgx.Tx) error { return settle(r.Context(), tx, application, status, event) })
	if err != nil {
		slog.Error("paydesk: payment not settled", "err", err)
		http.Error(w, "The pay desk is closed for a moment.", http.StatusServiceUnavailable)
		return
	}
	select {
	case d.news <- struct{}{}:
	default:
	}
	http.Redirect(w, r, "/pay/"+application, http.StatusSeeOther)
}

func settle(ctx context.Context, tx pgx.Tx, application, status, event string) error {
	var id string
	err := tx.QueryRow(ctx, "UPDATE paydesk.payments SET status = $2 WHERE application = $1 AND status = 'due' RETURNING id",
		application, status).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // decided already
	}
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"type": event, "payment": id, "application": application})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO paydesk.webhooks (id, body) VALUES ($1, $2)", "msg_"+rand.Text(), string(body))
	return err
}
