package api

import (
	"context"

	"github.com/postrider/postrider/admin/console/internal/live"
)

// SeriesOf is a request for the samples of the last minutes.
type SeriesOf struct {
	DB
	Minutes int `query:"minutes" minimum:"1" maximum:"1440" default:"15"`
}

func (s *Server) series(_ context.Context, d *database, in *SeriesOf) (*live.Series, error) {
	watch, err := has(d.watch, "gauges")
	if err != nil {
		return nil, err
	}
	return watch.Series(in.Minutes), nil
}
