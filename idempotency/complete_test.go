package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/memory"
)

var errUndo = errors.New("undo")

// TestComplete checks that the answer committed with the effect is sent, whatever the handler does
// after that.
func TestComplete(t *testing.T) {
	answer, err := idempotency.JSON(201, map[string]int{"id": 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := idempotency.JSON(200, func() {}); err == nil {
		t.Error("a function was encoded")
	}
	answer = answer.With("Location", "/1").With("Set-Cookie", "secret")
	for _, test := range []struct {
		name             string
		commit           bool
		then             func(w http.ResponseWriter)
		status, again    int
		runs, done       int // after both requests
		body, secondBody string
	}{
		{"sends it", true, func(w http.ResponseWriter) { answer.Send(w) }, 201, 201, 1, 1, `{"id":1}`, `{"id":1}`},
		{"sends nothing", true, func(http.ResponseWriter) {}, 201, 201, 1, 1, `{"id":1}`, `{"id":1}`},
		{"sends something else", true, func(w http.ResponseWriter) { http.Error(w, "no", 500) }, 201, 201, 1, 1, `{"id":1}`, `{"id":1}`},
		{"panics", true, func(http.ResponseWriter) { panic("crash") }, 0, 201, 1, 1, "", `{"id":1}`},
		{"rolled back, refused", false, func(w http.ResponseWriter) { w.WriteHeader(402); io.WriteString(w, "no") }, 402, 402, 1, 0, "no", "no"},
		{"rolled back, failed", false, func(w http.ResponseWriter) { w.WriteHeader(500) }, 500, 500, 2, 0, "", ""},
		{"rolled back, silent", false, func(http.ResponseWriter) {}, 500, 500, 2, 0, "-", "-"},
		{"rolled back, panics", false, func(http.ResponseWriter) { panic("crash") }, 0, 0, 2, 0, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			s.plain("POST /", func(w http.ResponseWriter, r *http.Request) {
				err := s.store.Do(r.Context(), func(ctx context.Context, tx *memory.Tx) error {
					s.effect(ctx)
					if err := s.keys.Complete(ctx, tx, answer); err != nil || test.commit {
						return err
					}
					return errUndo
				})
				if (err == nil) != test.commit {
					t.Error(err)
				}
				test.then(w)
			})
			for i, want := range []int{test.status, test.again} {
				func() {
					defer func() {
						if got := recover(); (got != nil) != (want == 0) {
							t.Errorf("%d: recovered %v", i, got)
						}
					}()
					w := s.do(ask("POST /", ""))
					body := []string{test.body, test.secondBody}[i]
					if w.Code != want || body != "-" && w.Body.String() != body {
						t.Errorf("%d: %d %s", i, w.Code, w.Body)
					}
					if want == 201 && w.Header().Get("Location") != "/1" {
						t.Error(w.Header())
					}
					if i == 1 && w.Header().Get("Set-Cookie") != "" {
						t.Error("the cookie was kept")
					}
				}()
			}
			if s.runs.now() != test.runs || s.done.now() != test.done {
				t.Errorf("%d runs, %d effects", s.runs.now(), s.done.now())
			}
		})
	}
}

// TestZombie checks that a request whose lease has expired and whose key was taken over cannot
// commit.
func TestZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.plain("POST /", func(w http.ResponseWriter, r *http.Request) {
			first := s.runs.now() == 1
			if first {
				time.Sleep(2 * time.Minute) // ignores its context
				if r.Context().Err() == nil {
					t.Error("the context outlives the lease")
				}
			}
			ctx := context.WithoutCancel(r.Context())
			err := s.store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
				s.effect(ctx)
				return s.keys.Complete(ctx, tx, idempotency.Answer{Body: fmt.Append(nil, "first: ", first)})
			})
			if errors.Is(err, idempotency.ErrLost) != first {
				t.Errorf("first: %v: %v", first, err)
			}
			if err != nil {
				w.WriteHeader(500)
			}
		})
		late := make(chan int)
		go func() { late <- s.do(ask("POST /", "")).Code }()
		time.Sleep(time.Minute + time.Second)
		if w := s.want(ask("POST /", ""), 200, 2, 1); w.Body.String() != "first: false" {
			t.Error(w.Body)
		}
		if status := <-late; status != 500 {
			t.Errorf("the zombie answers %d", status)
		}
		if w := s.want(ask("POST /", ""), 200, 2, 1); w.Body.String() != "first: false" {
			t.Error(w.Body)
		}

		// Without Complete both effects happen, and one answer is stored.
		s.plain("POST /plain", func(w http.ResponseWriter, r *http.Request) {
			run := s.runs.now()
			if run == 3 {
				time.Sleep(2 * time.Minute)
			}
			fmt.Fprint(w, run)
		})
		go func() { late <- s.do(ask("POST /plain", "")).Code }()
		time.Sleep(time.Minute + time.Second)
		s.want(ask("POST /plain", ""), 200, 4, 1)
		if status := <-late; status != 409 {
			t.Errorf("the zombie answers %d", status)
		}
		if w := s.want(ask("POST /plain", ""), 200, 4, 1); w.Body.String() != "4" {
			t.Error(w.Body)
		}
	})
}

func TestCompleteWithoutKey(t *testing.T) {
	s := open(t)
	s.plain("POST /", func(w http.ResponseWriter, r *http.Request) {
		if err := s.keys.Complete(r.Context(), s.store.Begin(), idempotency.Answer{Status: 201}); err != nil {
			t.Error(err)
		}
		w.WriteHeader(201)
	})
	s.want(ask("POST /", "", "Idempotency-Key", ""), 201, 1, 0)
	if err := s.keys.Complete(t.Context(), s.store.Begin(), idempotency.Answer{}); !errors.Is(err, idempotency.ErrNoClaim) {
		t.Error(err)
	}
}

func TestHandleErrors(t *testing.T) {
	for _, test := range []struct {
		err    error
		answer idempotency.Answer
		status int
	}{
		{err: errUndo, status: 500},
		{err: fmt.Errorf("sorry: %w", &idempotency.Problem{Status: 402, Title: "No money"}), status: 402},
		{err: &idempotency.Problem{}, status: 500},
		{err: postrider.ErrUncertain, status: 503},
		{err: postrider.Unavailable(errUndo), status: 503},
		{err: context.DeadlineExceeded, status: 503},
		{answer: idempotency.Answer{Status: 204, Body: []byte("x")}, status: 500},
		{answer: idempotency.Answer{Status: 100}, status: 500},
	} {
		s := open(t)
		s.whole("POST /", func(ctx context.Context, _ *memory.Tx, r *http.Request) (idempotency.Answer, error) {
			body, err := io.ReadAll(r.Body)
			if string(body) != "body" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
			s.effect(ctx)
			return test.answer, test.err
		})
		s.want(ask("POST /", "body"), test.status, 1, 0)
		s.want(ask("POST /", "body"), test.status, 2, 0)
		s.want(ask("POST /", "body", "Idempotency-Key", ""), test.status, 3, 0)
	}
	s := open(t)
	s.whole("/", func(ctx context.Context, _ *memory.Tx, r *http.Request) (idempotency.Answer, error) {
		s.effect(ctx)
		return (&idempotency.Problem{Status: 402}).Answer(), nil
	})
	s.want(ask("POST /", ""), 402, 1, 1)
	s.want(ask("POST /", ""), 402, 1, 1)
	s.want(ask("GET /", ""), 402, 2, 2)
	s.want(ask("POST /", "", "Idempotency-Key", ""), 402, 3, 3)
}

// TestRepeatedTransaction checks that a handler gets the whole request again if the transactor runs
// it again.
func TestRepeatedTransaction(t *testing.T) {
	s := open(t)
	s.mux.Handle("POST /", s.keys.Handle(stubborn{s.store}, func(ctx context.Context, _ *memory.Tx, r *http.Request) (idempotency.Answer, error) {
		s.runs.add()
		s.effect(ctx)
		body, err := io.ReadAll(r.Body)
		return idempotency.Answer{Body: body}, err
	}))
	if w := s.want(ask("POST /", "body"), 200, 2, 1); w.Body.String() != "body" {
		t.Error(w.Body)
	}
	if w := s.want(ask("POST /", "body"), 200, 2, 1); w.Body.String() != "body" {
		t.Error(w.Body)
	}
}

// stubborn rolls back the first run of every transaction.
type stubborn struct{ *memory.DB }

func (s stubborn) Do(ctx context.Context, f func(context.Context, *memory.Tx) error) error {
	err := s.DB.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		return err
	}
	return s.DB.Do(ctx, f)
}

// TestMany sends many concurrent requests for each of many keys, to all kinds of handlers, and
// expects one effect for each key.
func TestMany(t *testing.T) {
	const keys, each = 50, 16
	s := open(t, func(c *idempotency.Config) { c.Wait = time.Minute })
	var effects [3 * keys]atomic.Int32
	number := func(r *http.Request) (n int) {
		_, _ = fmt.Sscan(r.Header.Get("Idempotency-Key"), &n)
		return n
	}
	s.mux.Handle("POST /whole", s.keys.Handle(s.store, func(ctx context.Context, _ *memory.Tx, r *http.Request) (idempotency.Answer, error) {
		n := number(r)
		postrider.AfterCommit(ctx, func() { effects[n].Add(1) })
		return idempotency.JSON(200, n)
	}))
	s.mux.Handle("POST /complete", s.keys.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := idempotency.JSON(200, number(r))
		if err == nil {
			err = s.store.Do(r.Context(), func(ctx context.Context, tx *memory.Tx) error {
				postrider.AfterCommit(ctx, func() { effects[number(r)].Add(1) })
				return s.keys.Complete(ctx, tx, answer)
			})
		}
		if err != nil {
			t.Error(err)
		}
		answer.Send(w)
	})))
	s.mux.Handle("POST /plain", s.keys.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		effects[number(r)].Add(1)
		fmt.Fprint(w, number(r))
	})))
	var group sync.WaitGroup
	for n := range 3 * keys {
		for range each {
			group.Go(func() {
				w := s.do(ask("POST "+[]string{"/whole", "/complete", "/plain"}[n%3], "", "Idempotency-Key", fmt.Sprint(n)))
				if w.Code != 200 || w.Body.String() != fmt.Sprint(n) {
					t.Errorf("%d: %d %s", n, w.Code, w.Body)
				}
			})
		}
	}
	group.Wait()
	for n := range effects {
		if got := effects[n].Load(); got != 1 {
			t.Errorf("key %d: %d effects", n, got)
		}
	}
}

// TestOldKeysArePurged sends requests for two days and expects old keys to be purged without an
// explicit call.
func TestOldKeysArePurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{t: t, store: memory.Open(memory.Config{}), mux: http.NewServeMux()}
		watched := &purges{Idempotency: s.store.IdempotencyKeys()}
		s.wire(watched)
		s.plain("POST /", func(http.ResponseWriter, *http.Request) {})
		begin := time.Now()
		for n := range 48 {
			r := ask("POST /", "")
			r.Header.Set("Idempotency-Key", fmt.Sprintf("\"hour-%d\"", n))
			for range 3 { // within a minute
				s.do(r.Clone(t.Context()))
			}
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		if calls, removed := watched.calls.Load(), watched.removed.Load(); calls != 47 || removed != 24 { // not with the first request
			t.Errorf("after %v keys were removed %d times, %d in all; want once an hour, and those of the first day", time.Since(begin), calls, removed)
		}
	})
}

// purges counts the purged keys.
type purges struct {
	*memory.Idempotency

	calls, removed atomic.Int64
}

func (p *purges) Purge(ctx context.Context) (int, error) {
	n, err := p.Idempotency.Purge(ctx)
	p.calls.Add(1)
	p.removed.Add(int64(n))
	return n, err
}
