package idempotency_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/memory"
)

// whoAsks is the scope of an API whose gateway authenticates users and passes them in a header
// field.
func whoAsks(r *http.Request) (idempotency.Scope, error) {
	user := r.Header.Get("X-User")
	if user == "" {
		return idempotency.Scope{}, &idempotency.Problem{Status: http.StatusUnauthorized, Title: "Who are you?"}
	}
	return idempotency.Scope{Tenant: "acme", Principal: user}, nil
}

// post sends a request and prints the response.
func post(h http.Handler, path, user, key, body string) {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("X-User", user)
	r.Header.Set(idempotency.Header, key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text := w.Body.String()
	var problem idempotency.Problem
	if json.Unmarshal(w.Body.Bytes(), &problem) == nil && problem.Title != "" {
		text = problem.Title
	}
	if w.Header().Get(idempotency.ReplayedHeader) == "true" {
		text += " (replayed)"
	}
	fmt.Println(w.Code, text)
}

// The key, the order, its message and the answer are one commit.
func ExampleKeys_Handle() {
	store := memory.Open(memory.Config{})
	keys, err := idempotency.New(store.IdempotencyKeys(), idempotency.Config{Scope: whoAsks, Required: true})
	if err != nil {
		log.Fatal(err)
	}
	var outbox postrider.Outbox[*memory.Tx] = store
	orders := 0
	var placeOrder idempotency.Handler[*memory.Tx] = func(ctx context.Context, tx *memory.Tx, r *http.Request) (idempotency.Answer, error) {
		var order struct{ Item string }
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			return idempotency.Answer{}, &idempotency.Problem{Status: http.StatusBadRequest, Title: "Not an order"}
		}
		if order.Item == "moon" { // an answer that is stored: a retry gets the same one
			return (&idempotency.Problem{Status: http.StatusNotFound, Title: "No such item"}).Answer(), nil
		}
		orders++ // INSERT INTO orders …
		if err := outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: fmt.Sprint(orders)}, order)); err != nil {
			return idempotency.Answer{}, err
		}
		answer, err := idempotency.JSON(http.StatusCreated, map[string]any{"order": orders, "item": order.Item})
		return answer.With("Location", fmt.Sprint("/orders/", orders)), err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", keys.Handle(store, placeOrder))

	post(mux, "/orders", "ann", `"8e03978e"`, `{"item":"shoe"}`)
	post(mux, "/orders", "ann", `"8e03978e"`, `{"item":"shoe"}`)
	post(mux, "/orders", "ann", `"8e03978e"`, `{"item":"hat"}`)
	post(mux, "/orders", "bob", `"8e03978e"`, `{"item":"hat"}`)
	post(mux, "/orders", "bob", `"77"`, `{"item":"moon"}`)
	post(mux, "/orders", "bob", `77`, `{"item":"moon"}`)
	post(mux, "/orders", "", `"77"`, `{"item":"hat"}`)
	post(mux, "/orders", "bob", `"`, `{"item":"hat"}`)
	// Output:
	// 201 {"item":"shoe","order":1}
	// 201 {"item":"shoe","order":1} (replayed)
	// 422 Idempotency-Key is already used
	// 201 {"item":"hat","order":2}
	// 404 No such item
	// 404 No such item (replayed)
	// 401 Who are you?
	// 400 Idempotency-Key is not valid
}

// A handler with its own transaction completes its key in it.
func ExampleKeys_Complete() {
	store := memory.Open(memory.Config{})
	keys, err := idempotency.New(store.IdempotencyKeys(), idempotency.Config{Scope: whoAsks})
	if err != nil {
		log.Fatal(err)
	}
	pay := func(w http.ResponseWriter, r *http.Request) {
		tx := store.Begin()
		defer func() { _ = tx.Rollback() }()
		// UPDATE accounts …
		answer := idempotency.Answer{Status: http.StatusOK, Body: []byte("paid")}
		err := keys.Complete(r.Context(), tx, answer)
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			// [idempotency.ErrLost] means that the lease expired and another request has the key.
			// ErrTooLarge and ErrNoClaim are programming errors.
			http.Error(w, "sorry", http.StatusInternalServerError)
			return
		}
		answer.Send(w)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", keys.Middleware(http.HandlerFunc(pay)))
	post(mux, "/payments", "ann", `"1"`, "10 EUR")
	post(mux, "/payments", "ann", `"1"`, "10 EUR")

	err = keys.Complete(context.Background(), store.Begin(), idempotency.Answer{})
	fmt.Println(errors.Is(err, idempotency.ErrNoClaim), errors.Is(err, idempotency.ErrLost), errors.Is(err, idempotency.ErrTooLarge))
	// Output:
	// 200 paid
	// 200 paid (replayed)
	// true false false
}

// All fields of the configuration.
func ExampleConfig() {
	block, err := aes.NewCipher(make([]byte, 32)) // load a real key from your secret store
	if err != nil {
		log.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		log.Fatal(err)
	}
	store := memory.Open(memory.Config{}).IdempotencyKeys()
	var keys *idempotency.Keys[*memory.Tx]
	keys, err = idempotency.New(store, idempotency.Config{
		Scope:     idempotency.Public, // a sign-up form has no users
		Required:  true,
		Wait:      2 * time.Second,
		Lease:     30 * time.Second,
		Retention: 7 * 24 * time.Hour,
		MaxKey:    64,
		MaxBody:   64 << 10,
		MaxAnswer: 64 << 10,
		Headers:   append(idempotency.DefaultHeaders(), "X-Rate-Class"),
		Keep:      func(status int) bool { return idempotency.KeepFinal(status) && status != http.StatusForbidden },
		Route:     func(r *http.Request) string { return r.Method + " " + r.URL.Path },
		Cipher:    aead,
		Docs:      "https://example.com/docs/keys",
		Logger:    slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /accounts", keys.Middleware(http.NotFoundHandler()))
	post(mux, "/accounts", "", `"1"`, "")
	// Output:
	// 400 Idempotency-Key is not valid
}

// The methods of a store, without HTTP.
func ExampleStore() {
	database := memory.Open(memory.Config{})
	var store idempotency.Store[*memory.Tx] = database.IdempotencyKeys()
	ctx := context.Background()
	claim := idempotency.Claim{
		ID:          idempotency.ID{Tenant: "acme", Principal: "ann", Route: "POST /orders", Key: "8e03978e"},
		Fingerprint: idempotency.Fingerprint{1},
		Token:       "mine",
		Lease:       time.Minute,
		Retention:   time.Hour,
	}
	ask := func(change func(c *idempotency.Claim)) {
		c := claim
		change(&c)
		outcome, err := store.Claim(ctx, c)
		fmt.Println(outcome.State, string(outcome.Answer.Body), err)
	}
	ask(func(*idempotency.Claim) {})
	ask(func(c *idempotency.Claim) { c.Token = "other" })
	ask(func(c *idempotency.Claim) { c.Token = "other"; c.Fingerprint[0] = 2 })
	fmt.Println(store.Save(ctx, claim, idempotency.Answer{Status: 200, Body: []byte("done")}))
	ask(func(c *idempotency.Claim) { c.Token = "other" })
	fmt.Println(store.Release(ctx, claim)) // no effect: the key is completed

	whole := claim
	whole.Key, whole.Lease = "in one transaction", 0
	err := database.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		outcome, err := store.ClaimIn(ctx, tx, whole)
		if err != nil || outcome.State != idempotency.Claimed {
			return err
		}
		return store.Complete(ctx, tx, whole, idempotency.Answer{Status: 200})
	})
	removed, _ := store.Purge(ctx)
	fmt.Println(err, removed)
	fmt.Println(slices.Contains([]idempotency.State{idempotency.Busy, idempotency.Done, idempotency.Mismatch}, idempotency.Claimed))
	// Output:
	// claimed  <nil>
	// busy  <nil>
	// mismatch  <nil>
	// <nil>
	// done done <nil>
	// <nil>
	// <nil> 0
	// false
}

// How a custom store encodes answers, and which values the header field may have.
func ExampleAnswer_MarshalBinary() {
	data, err := idempotency.Answer{Status: 200, Body: []byte("text")}.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	var answer idempotency.Answer
	err = answer.UnmarshalBinary(data)
	fmt.Println(answer.Status, string(answer.Body), err)
	key, err := idempotency.ParseKey(`"8e03978e-40d5-43e8-bc93-6894a57f9324"`)
	fmt.Println(key, err)
	fmt.Println((&idempotency.Problem{Title: "No", Detail: "not today"}).Error())
	// Output:
	// 200 text <nil>
	// 8e03978e-40d5-43e8-bc93-6894a57f9324 <nil>
	// No: not today
}
