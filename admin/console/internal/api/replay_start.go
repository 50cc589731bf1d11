package api

import (
	"context"
	"slices"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/phrase"
)

// NewReplay is a request to start a replay.
type NewReplay struct {
	DB
	Body struct {
		Filter Filter `json:"filter"`
		Dead   bool   `json:"dead,omitempty" doc:"dead letters; otherwise what a feed has delivered and the log still holds"`
		Rate   int    `json:"rate,omitempty" minimum:"0" doc:"messages a second; 0 is no limit"`
		Why    string `json:"why,omitempty" maxLength:"1000" doc:"required for more than one message"`
		DryRun bool   `json:"dry_run,omitempty"`
		Force  bool   `json:"force,omitempty" doc:"also messages that are older than what consumers remember"`
	}
}

func (s *Server) startReplay(ctx context.Context, d *database, in *NewReplay) (*Done, error) {
	b := &in.Body
	if _, err := has(d.Replays, "replays"); err != nil {
		return nil, err
	}
	filter, err := b.Filter.admin()
	if err != nil {
		return nil, err
	}
	done := &Done{}
	if b.Dead {
		deadLetters, err := has(d.DeadLetters, "dead letters")
		if err != nil {
			return nil, err
		}
		if filter.Statuses, err = statusesFor(admin.Retry, &filter); err != nil {
			return nil, err
		}
		if done, _, err = s.wouldAct(ctx, deadLetters, filter, 0); err != nil {
			return nil, err
		}
		done.Command = d.actCommand(admin.Retry, &filter, done, b.Why, b.Rate)
	} else {
		if filter.Feed, err = d.theFeed(ctx, filter.Feed); err != nil {
			return nil, err
		}
		filter.Statuses = nil
		log, err := has(d.Log, "log")
		if err != nil {
			return nil, err
		}
		if done.Count, done.Sample, err = s.countLog(ctx, log, filter); err != nil {
			return nil, err
		}
		done.Command = d.replayCommand(&filter, b.Force, b.Rate, b.Why)
	}
	done.DryRun = b.DryRun
	if b.DryRun || done.Count == 0 {
		return done, nil
	}
	if done.Count > 1 {
		if err := needWhy(b.Why, "send "+phrase.Quantity(done.Count, "message", "messages")+" again"); err != nil {
			return nil, err
		}
	}
	done.Sample = nil
	return s.start(ctx, d, admin.Replay{Filter: filter, Dead: b.Dead, Rate: b.Rate, Force: b.Force}, b.Why, done)
}

func (d *database) replayCommand(f *admin.Filter, force bool, rate int, why string) string {
	var forced []string
	if force {
		forced = []string{"--force"}
	}
	flags := slices.Concat(forced, atRate(rate), reason(why))
	if !f.ID.IsZero() {
		return d.command("replay", slices.Concat([]string{f.ID.String()}, whose(f.Feed), flags)...)
	}
	return d.command("replay --all", slices.Concat(chosenBy(f), flags)...)
}

// replayDead starts a replay of dead letters.
func (s *Server) replayDead(ctx context.Context, d *database, filter admin.Filter, rate int, why string, done *Done) (*Done, error) {
	return s.start(ctx, d, admin.Replay{Filter: filter, Dead: true, Rate: rate}, why, done)
}

func (s *Server) start(ctx context.Context, d *database, r admin.Replay, why string, done *Done) (*Done, error) {
	job, err := d.Replays.StartReplay(ctx, by(ctx, why), r)
	if err != nil {
		return nil, err
	}
	s.acted(ctx, d, "replay started", why, "replay", job.ID, "count", job.Total)
	s.carryOn(d, job)
	done.Count, done.Job = job.Total, replayOf(&job)
	return done, nil
}
