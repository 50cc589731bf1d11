package idempotency

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/postrider/postrider/test/docs/scratch"
)

// TestRequests sends each request twice, like a client that has lost the response.
func TestRequests(t *testing.T) {
	pool, db := scratch.Open(t, "CREATE TABLE orders (id bigserial PRIMARY KEY, item text NOT NULL)")
	mux := http.NewServeMux()
	if err := Serve(mux, pool, db.Outbox()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/orders", "/carts"} {
		var answers []string
		for range 2 {
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(`{"item":"shoe"}`))
			r.SetBasicAuth("ann", "secret")
			r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43e8-bc93-6894a57f9324"`)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if w.Code != http.StatusCreated {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
			answers = append(answers, w.Body.String())
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: %q", path, answers)
		}
	}
	if n := scratch.Count(t, pool, "SELECT count(*) FROM orders"); n != 2 {
		t.Errorf("%d orders", n)
	}
	if n := scratch.Count(t, pool, "SELECT count(*) FROM postrider.messages"); n != 1 {
		t.Errorf("%d messages", n)
	}
}
