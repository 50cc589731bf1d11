package api

import (
	"context"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin/console/auth"
)

const (
	readingLasts = 10 * time.Minute // pages refresh: requests within this time count as one reading
	mostReadings = 10_000
)

// readings records which user has recently seen which payload, and is in the audit log with that.
type readings struct {
	mu sync.Mutex
	at map[[2]string]time.Time
}

// isNew reports whether a reading must be recorded in the audit log.
func (r *readings) isNew(who, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.at[[2]string{who, id}]) > readingLasts
}

func (r *readings) note(who, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil || len(r.at) >= mostReadings {
		r.at = make(map[[2]string]time.Time) // some readings are recorded twice
	}
	r.at[[2]string{who, id}] = time.Now()
}

// mayRead reports whether the user may see the payload of a message. It records the reading first,
// and refuses it if it cannot be recorded.
func (s *Server) mayRead(ctx context.Context, d *database, feed string, id postrider.ID) bool {
	if !s.seesPayloads(ctx) {
		return false
	}
	who, _ := auth.From(ctx)
	if d.Records == nil || !d.readings.isNew(who.Name, id.String()) {
		return true
	}
	if err := d.Records.Reveal(ctx, by(ctx, "opened in the console"), feed, id); err != nil {
		s.cfg.Logger.WarnContext(ctx, "console: payload hidden: the reading cannot be recorded", "id", id, "database", d.Name, "err", s.scrub(err.Error()))
		return false
	}
	d.readings.note(who.Name, id.String())
	return true
}
