package codec_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook"
)

const (
	current  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	previous = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDGkjGNiyKOmc="
	stranger = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
)

// TestOfficialVerifiesOurs publishes with two secrets, as during a rotation, and verifies with the
// official library.
func TestOfficialVerifiesOurs(t *testing.T) {
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	p, err := webhook.NewPublisher(webhook.Config{URL: server.URL, Secrets: []string{current, previous}, AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, payload := range []string{`{"total": 12.50}`, "", "\x00\xff binary"} {
		m := full(payload, "application/octet-stream")
		m.Headers = nil
		if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
			t.Fatal(errs)
		}
		for secret, want := range map[string]bool{current: true, previous: true, stranger: false} {
			w, err := official.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Verify(body, header); (err == nil) != want {
				t.Errorf("%q: the official library says %v", payload, err)
			}
		}
	}
}

// TestWeVerifyOfficial signs with the official library, also during a rotation, and posts to our
// receiver.
func TestWeVerifyOfficial(t *testing.T) {
	receiver, err := webhook.NewReceiver(webhook.Config{Secrets: []string{current, previous}},
		func(context.Context, postrider.Message) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(receiver)
	defer server.Close()
	post := func(at time.Time, secrets ...string) int {
		const body = `{"total": 12.50}`
		var signatures []string
		for _, secret := range secrets {
			w, err := official.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			signature, err := w.Sign("msg_1", at, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			signatures = append(signatures, signature)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(official.HeaderWebhookID, "msg_1")
		r.Header.Set(official.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
		r.Header.Set(official.HeaderWebhookSignature, strings.Join(signatures, " "))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for name, c := range map[string]struct {
		at      time.Time
		secrets []string
		want    int
	}{
		"current":             {time.Now(), []string{current}, 204},
		"previous":            {time.Now(), []string{previous}, 204},
		"both":                {time.Now(), []string{current, previous}, 204},
		"a stranger as well":  {time.Now(), []string{stranger, previous}, 204},
		"only a stranger":     {time.Now(), []string{stranger}, 401},
		"a little late":       {time.Now().Add(-4 * time.Minute), []string{current}, 204},
		"too late":            {time.Now().Add(-6 * time.Minute), []string{current}, 401},
		"from the far future": {time.Now().Add(6 * time.Minute), []string{current}, 401},
	} {
		if got := post(c.at, c.secrets...); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
