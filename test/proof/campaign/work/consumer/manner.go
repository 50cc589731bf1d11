package consumer

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/postrider/postrider"
)

// Manner is how the handlers of a process behave. A request POST /control?answer=panic&share=10
// changes it for 10 % of the calls, until the next one. Answers are ok, panic, hang (until the
// handler's deadline) and provider (something that handlers need is away).
type Manner struct{ now atomic.Pointer[manner] }

type manner struct {
	kind  string
	share int // percent of the calls
}

var errProvider = errors.New("the provider of the handlers is away")

// ServeHTTP changes the manner.
func (m *Manner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	share, err := strconv.Atoi(cmp.Or(r.FormValue("share"), "100"))
	switch kind := r.FormValue("answer"); kind {
	case "ok", "panic", "hang", "provider":
		m.now.Store(&manner{kind, share})
	default:
		err = errors.Join(err, errors.New("there is no such manner"))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// before is what a handler does before its work.
func (m *Manner) before(ctx context.Context) error {
	now := m.now.Load()
	if now == nil || rand.IntN(100) >= now.share {
		return nil
	}
	switch now.kind {
	case "panic":
		panic("a handler panics on purpose")
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "provider":
		return postrider.Unavailable(errProvider)
	}
	return nil
}
