package api

import (
	"context"
	"strings"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/auth"
)

// by returns the user and the reason, for the audit log.
func by(ctx context.Context, why string) admin.By {
	who, _ := auth.From(ctx)
	return admin.By{Who: who.Name + " (console)", Why: strings.TrimSpace(why)}
}

// needWhy returns an error if the reason is missing.
func needWhy(why, what string) error {
	if strings.TrimSpace(why) == "" {
		return invalid("why is missing: to %s takes a reason, for the record", what)
	}
	return nil
}

// acted logs an action of a user, and makes the samples stale so that the action shows at once.
func (s *Server) acted(ctx context.Context, d *database, what string, why string, args ...any) {
	who, _ := auth.From(ctx)
	//nolint:sloglint // one of few texts
	s.cfg.Logger.InfoContext(ctx, "console: "+what, append([]any{"who", who.Name, "via", who.Via, "why", why, "database", d.Name}, args...)...)
	if d.watch != nil {
		d.watch.Stale()
	}
}
