package idempotency_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"io"
	"net/http"
	"testing"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/memory"
)

// thief is a store that returns ann's answers to everyone, as if an attacker had changed its table.
type thief struct {
	idempotency.Store[*memory.Tx]
	answers []idempotency.Answer
}

func (s *thief) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	c.Principal = "ann"
	return s.Store.Claim(ctx, c)
}

func (s *thief) ClaimIn(ctx context.Context, tx *memory.Tx, c idempotency.Claim) (idempotency.Outcome, error) {
	c.Principal = "ann"
	return s.Store.ClaimIn(ctx, tx, c)
}

func (s *thief) Complete(ctx context.Context, tx *memory.Tx, c idempotency.Claim, a idempotency.Answer) error {
	s.answers = append(s.answers, a)
	return s.Store.Complete(ctx, tx, c, a)
}

func (s *thief) Save(ctx context.Context, c idempotency.Claim, a idempotency.Answer) error {
	s.answers = append(s.answers, a)
	return s.Store.Save(ctx, c, a)
}

func withCipher(t *testing.T, key byte) func(*idempotency.Config) {
	t.Helper()
	block, err := aes.NewCipher(bytes.Repeat([]byte{key}, 32))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *idempotency.Config) { c.Cipher = aead }
}

// TestCipher checks that the store cannot read encrypted answers, or give them to other requests.
func TestCipher(t *testing.T) {
	s := open(t)
	store := &thief{Store: s.store.IdempotencyKeys()}
	answer := idempotency.Answer{Status: 201, Header: http.Header{"Location": {"/secret"}}, Body: []byte("secret")}
	routes := func() {
		s.mux = http.NewServeMux()
		s.plain("POST /plain", func(w http.ResponseWriter, _ *http.Request) { answer.Send(w) })
		s.plain("POST /complete", func(w http.ResponseWriter, r *http.Request) {
			err := s.store.Do(r.Context(), func(ctx context.Context, tx *memory.Tx) error { return s.keys.Complete(ctx, tx, answer) })
			if err != nil {
				t.Error(err)
			}
			answer.Send(w)
		})
		s.whole("POST /whole", func(context.Context, *memory.Tx, *http.Request) (idempotency.Answer, error) { return answer, nil })
	}
	paths := []string{"/plain", "/complete", "/whole"}
	s.wire(store, withCipher(t, 1))
	routes()
	for i, path := range paths {
		for range 2 {
			w := s.want(ask("POST "+path, ""), 201, i+1, 0)
			if w.Body.String() != "secret" || w.Header().Get("Location") != "/secret" || w.Header().Get("Postrider-Sealed") != "" {
				t.Errorf("%s: %v %s", path, w.Header(), w.Body)
			}
		}
		w := s.want(ask("POST "+path, "", "User", "bob"), 500, i+1, 0)
		if bytes.Contains(w.Body.Bytes(), []byte("secret")) || w.Header().Get("Location") != "" {
			t.Errorf("bob got the answer %v %s", w.Header(), w.Body)
		}
	}
	for _, a := range store.answers {
		if data, err := a.MarshalBinary(); err != nil || bytes.Contains(data, []byte("secret")) {
			t.Errorf("stored: %q, %v", data, err)
		}
	}
	for _, change := range []func(*idempotency.Config){withCipher(t, 2), func(*idempotency.Config) {}} { // another cipher, and none
		s.wire(store, change)
		routes()
		for _, path := range paths {
			s.want(ask("POST "+path, ""), 500, 3, 0)
		}
	}

	// Answers that were stored without a cipher are replayed with one.
	s.plain("POST /before", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "before") })
	s.want(ask("POST /before", ""), 200, 4, 0)
	s.wire(store, withCipher(t, 1))
	s.mux = http.NewServeMux()
	s.plain("POST /before", http.NotFound)
	s.want(ask("POST /before", ""), 200, 4, 0)
}
