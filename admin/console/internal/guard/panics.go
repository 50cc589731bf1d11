package guard

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
)

// survive serves a request, and answers for a handler that panics. The stack is for the log only: it tells strangers too much.
func (g *guard) survive(w http.ResponseWriter, r *http.Request, next http.Handler) {
	seen := &writer{ResponseWriter: w}
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler)
		}
		g.log.ErrorContext(r.Context(), "console: a handler has panicked", "panic", fmt.Sprint(cause), "method", r.Method,
			"path", clip(r.URL.Path), "stack", string(debug.Stack()))
		if seen.begun {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
		Problem{
			Status: http.StatusInternalServerError,
			Detail: "The console has made a mistake. Its log says more.",
		}.Write(w)
	}()
	next.ServeHTTP(seen, r)
}

// writer knows whether the answer has begun.
type writer struct {
	http.ResponseWriter
	begun bool
}

func (w *writer) WriteHeader(status int) {
	w.begun = w.begun || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Flush is for streams; they may also use [http.ResponseController].
func (w *writer) Flush() {
	w.begun = true
	_ = http.NewResponseController(w.ResponseWriter).Flush() // the client is gone, or there is nothing to flush
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
