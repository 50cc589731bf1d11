package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/admissions/paydesk"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// office is the whole service in one process, with a database of its own. A relay replaces the
// queue: it passes messages to the workers directly.
type office struct {
	t       *testing.T
	set     settings
	pool    *pgxpool.Pool
	db      *postgres.DB
	mailbox *mailbox
}

func openOffice(t *testing.T) *office {
	t.Helper()
	slog.SetDefault(slog.New(slog.NewTextHandler(t.Output(), nil)))
	o := &office{t: t, pool: pgtest.Pool(t, pgtest.Database(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))), mailbox: openMailbox(t)}
	var err error
	o.db, err = postgres.Open(o.pool, postgres.Config{})
	must(t, err)
	serviceAt, deskAt := httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil)
	o.set = settings{
		url: "http://" + serviceAt.Listener.Addr().String(), paydeskURL: "http://" + deskAt.Listener.Addr().String(),
		smtpURL: o.mailbox.url, paymentSecret: "whsec_" + base64.StdEncoding.EncodeToString([]byte(rand.Text())),
	}
	must(t, layOutTables(t.Context(), o.pool, o.db))
	service, err := newService(o.pool, o.db, o.set)
	must(t, err)
	desk, err := paydesk.New(o.pool, paydesk.Config{Secret: o.set.paymentSecret, WebhookURL: o.set.url + "/webhooks/payments"})
	must(t, err)
	serviceAt.Config.Handler, deskAt.Config.Handler = service.handler, desk
	serviceAt.Start()
	t.Cleanup(serviceAt.Close)
	deskAt.Start()
	t.Cleanup(deskAt.Close)
	o.run(desk.Run, service.webhook.Run)
	return o
}

// in returns the office for a subtest.
func (o *office) in(t *testing.T) *office {
	part := *o
	part.t = t
	return &part
}

// work starts the workers.
func (o *office) work() {
	o.t.Helper()
	workers, err := newWorkers(o.db, o.set)
	must(o.t, err)
	carrier, err := relay.New(o.db.Feeds(), postrider.PublisherFunc(byType(workers)), relay.Config{})
	must(o.t, err)
	o.run(carrier.Run)
	for _, w := range workers {
		o.run(func(ctx context.Context) error { return w.inbox.Run(ctx) })
		if w.also != nil {
			o.run(w.also)
		}
	}
}

// run runs parts of the office until the test ends.
func (o *office) run(parts ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- together(ctx, parts...) }()
	o.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			o.t.Error(err)
		}
	})
}

// apply sends an application with two documents, and returns the answer and its body.
func (o *office) apply(key, programme string) (*http.Response, string) {
	o.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, field := range [][2]string{{"name", "Ann Example"}, {"email", "ann@example.com"}, {"programme", programme}} {
		must(o.t, w.WriteField(field[0], field[1]))
	}
	for i := range 2 {
		part, err := w.CreateFormFile("document", fmt.Sprintf("%d.txt", i))
		must(o.t, err)
		fmt.Fprintf(part, "Certificate %d\n", i)
	}
	must(o.t, w.Close())
	return o.send("/applications", &body, "Content-Type", w.FormDataContentType(), "Idempotency-Key", key)
}

// send sends a request with header fields, in pairs.
func (o *office) send(path string, body io.Reader, fields ...string) (*http.Response, string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.set.url+path, body)
	must(o.t, err)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	must(o.t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	must(o.t, err)
	return answer, string(content)
}

// admit applies, and returns the ID of the application.
func (o *office) admit(programme string) string {
	o.t.Helper()
	answer, body := o.apply(rand.Text(), programme)
	var a struct{ ApplicationID string }
	if answer.StatusCode != http.StatusAccepted || json.Unmarshal([]byte(body), &a) != nil {
		o.t.Fatalf("%s: %s", answer.Status, body)
	}
	return a.ApplicationID
}

// get sends a GET request as a browser or a program does, and returns the response and its body. It
// does not follow redirects.
func (o *office) get(path, accept string) (*http.Response, string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.set.url+path, http.NoBody)
	must(o.t, err)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	must(o.t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	must(o.t, err)
	return answer, string(content)
}

// decide presses a button at the pay desk.
func (o *office) decide(id, action string) {
	o.t.Helper()
	answer, err := http.PostForm(o.set.paydeskURL+"/pay/"+id, url.Values{"action": {action}})
	must(o.t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		o.t.Fatal(answer.Status)
	}
}

// await waits until the service reports the given status and progress of an application.
func (o *office) await(id, status string, progress int) {
	o.t.Helper()
	o.eventually(func() string {
		answer, body := o.get("/applications/"+id+"/status", "")
		var a struct {
			Status   string
			Progress int
		}
		if answer.StatusCode != http.StatusOK || json.Unmarshal([]byte(body), &a) != nil {
			return answer.Status + ": " + body
		}
		if a.Status == status && a.Progress == progress {
			return ""
		}
		return fmt.Sprintf("the application is %s at %d %%, want %s at %d %%", a.Status, a.Progress, status, progress)
	})
}

// eventually waits until a function returns no complaint.
func (o *office) eventually(complaint func() string) {
	o.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c := complaint(); c == "" {
			return
		} else if time.Now().After(end) {
			o.t.Fatal(c)
		}
	}
}

// count returns the number that a query selects.
func (o *office) count(query string, args ...any) (n int) {
	o.t.Helper()
	must(o.t, o.pool.QueryRow(o.t.Context(), query, args...).Scan(&n))
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
