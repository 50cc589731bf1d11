package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/admin/console/internal/source"
)

// Checkup is the result of a doctor.
type Checkup struct {
	At       time.Time        `json:"at"`
	Findings []source.Finding `json:"findings"`
}

// checkupLimit is the time limit of a checkup, which queries more than other requests.
const checkupLimit = 30 * time.Second

func (s *Server) checkup(ctx context.Context, d *database, _ *DB) (*Checkup, error) {
	if d.Doctor == nil {
		return nil, absent("this database has no doctor")
	}
	c, err := d.doctor.get(ctx, func(ctx context.Context) (Checkup, error) {
		found, err := d.Doctor(ctx)
		c := Checkup{time.Now().UTC(), append([]source.Finding{}, found...)}
		for i := range c.Findings {
			f := &c.Findings[i]
			f.Finding, f.Why, f.Fix = s.shown(f.Finding), s.shown(f.Why), s.scrub(f.Fix)
		}
		return c, err
	})
	return &c, err
}
