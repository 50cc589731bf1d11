package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/internal/live"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/feeds"
)

// Failure is an error response of the API (RFC 9457).
type Failure struct { //nolint:errname // it is what the API answers as well as an error
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty" doc:"the command or step that helps"`
}

func (f *Failure) Error() string { return f.Detail }

// GetStatus implements [huma.StatusError].
func (f *Failure) GetStatus() int { return f.Status }

// ContentType implements [huma.ContentTypeFilter].
func (f *Failure) ContentType(string) string { return "application/problem+json" }

func failf(status int, next, format string, args ...any) *Failure {
	return &Failure{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...), Next: next}
}

func invalid(format string, args ...any) *Failure {
	return failf(http.StatusUnprocessableEntity, "", format, args...)
}

func absent(format string, args ...any) *Failure {
	return failf(http.StatusNotFound, "", format, args...)
}

// worded converts an error response of huma to a Failure.
func worded(_ huma.Context, _ string, value any) (any, error) {
	m, ok := value.(*huma.ErrorModel)
	if !ok {
		return value, nil
	}
	detail := m.Detail
	for i, e := range m.Errors {
		if e == nil {
			continue
		}
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		detail += sep + e.Message
		if e.Location != "" {
			detail += " (" + e.Location + ")"
		}
	}
	return failf(m.Status, "", "%s", detail), nil
}

// failure converts an error to a response. It logs errors that the client has not caused.
func (s *Server) failure(ctx context.Context, d *database, err error) *Failure {
	var f *Failure
	var refused *admin.RefusedError
	var bad *postrider.InvalidError
	var notYet *reconcile.NotYetError
	switch {
	case errors.As(err, &f):
		f.Detail, f.Next = s.scrub(f.Detail), s.scrub(f.Next)
		return f
	case errors.As(err, &refused):
		return failf(http.StatusConflict, s.scrub(refused.Remedy), "%s", s.scrub(refused.Reason))
	case errors.Is(err, admin.ErrNoFeed):
		return failf(http.StatusNotFound, d.command("feeds ls"), "there is no such feed")
	case errors.Is(err, admin.ErrNoMessage):
		return failf(http.StatusNotFound, d.command("messages ls"), "there is no such message")
	case errors.Is(err, saga.ErrNotFound):
		return failf(http.StatusNotFound, d.command("saga ls"), "there is no such saga")
	case errors.Is(err, reconcile.ErrNoJob):
		return failf(http.StatusNotFound, d.command("reconcile ls"), "there is no such reconciler")
	case errors.As(err, &notYet):
		return failf(http.StatusConflict, "wait for it to end", "%s", strings.TrimPrefix(notYet.Error(), "reconcile: "))
	case errors.As(err, &bad):
		return invalid("%s", strings.TrimPrefix(bad.Error(), "postrider: "))
	case errors.Is(err, live.ErrCrowded):
		return failf(http.StatusServiceUnavailable, "close other windows of the console", "there are too many open streams already")
	case errors.Is(err, live.ErrClosed):
		return failf(http.StatusServiceUnavailable, "try again later", "the console is shutting down")
	}
	s.cfg.Logger.WarnContext(ctx, "console: request failed", "database", d.name(), "error", s.scrub(err.Error()))
	switch {
	case errors.Is(err, feeds.ErrSchema):
		return failf(http.StatusServiceUnavailable, d.command("migrate status"), "the schema of the database is missing or has another version")
	case errors.Is(err, context.DeadlineExceeded):
		return failf(http.StatusServiceUnavailable, "narrow the filter, or try again when the database has less load",
			"the database has not answered in time")
	case unreachable(err):
		return failf(http.StatusServiceUnavailable, d.command("doctor"), "unreachable: the database does not answer")
	}
	return failf(http.StatusInternalServerError, "see the log of the program", "%s", cut(s.scrub(err.Error())))
}

// unreachable reports whether the connection to the database has failed. Drivers wrap network
// errors.
func unreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || postrider.ClassOf(err) == postrider.ClassUnavailable
}
