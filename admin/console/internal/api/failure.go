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

// Failure is an error as the API answers it (RFC 9457).
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

// worded makes a failure of what huma says about a request that it does not understand.
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

// failure says what an error means to whoever has asked. What is nobody's business but the operator's goes to the log.
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
		return failf(http.StatusServiceUnavailable, "close other windows of the console", "too many watch already")
	case errors.Is(err, live.ErrClosed):
		return failf(http.StatusServiceUnavailable, "come again when it is back", "the console is being shut down")
	}
	s.cfg.Logger.WarnContext(ctx, "console: a request has failed", "database", d.name(), "error", s.scrub(err.Error()))
	switch {
	case errors.Is(err, feeds.ErrSchema):
		return failf(http.StatusServiceUnavailable, d.command("migrate status"), "the schema of the database is missing or has another version")
	case errors.Is(err, context.DeadlineExceeded):
		return failf(http.StatusServiceUnavailable, "narrow the filter, or ask again when the database has less to do",
			"the database has not answered in time")
	case unreachable(err):
		return failf(http.StatusServiceUnavailable, d.command("doctor"), "unreachable: the database does not answer")
	}
	return failf(http.StatusInternalServerError, "see the log of the program", "%s", cut(s.scrub(err.Error())))
}

// unreachable reports whether an error is one of the way to the database. Drivers wrap those of the network.
func unreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || postrider.ClassOf(err) == postrider.ClassUnavailable
}
