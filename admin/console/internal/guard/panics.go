package guard

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
)

// survive serves a request, and responds if the handler panics. The stack goes to the log only.
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
		g.log.ErrorContext(r.Context(), "console: handler panicked", "panic", fmt.Sprint(cause), "method", r.Method,
			"path", clip(r.URL.Path), "stack", string(debug.Stack()))
		if seen.begun {
			panic(http.ErrAbortHandler) // abort the connection, so that a partial response does not look complete
		}
		Problem{
			Status: http.StatusInternalServerError,
			Detail: "Internal error. See the log of the console.",
		}.Write(w)
	}()
	next.ServeHTTP(seen, r)
}

// writer records whether the response has begun.
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

// Flush implements [http.Flusher] for streams, which may also use [http.ResponseController].
func (w *writer) Flush() {
	w.begun = true
	_ = http.NewResponseController(w.ResponseWriter).Flush() // an error means that the client has disconnected
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
