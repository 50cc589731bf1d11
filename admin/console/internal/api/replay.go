package api

import (
	"context"
	"strconv"
	"time"

	"github.com/postrider/postrider/admin"
)

// Replay is a job that sends messages again.
type Replay struct {
	ID        int64     `json:"id"`
	State     string    `json:"state" enum:"running,paused,done,cancelled"`
	Filter    Filter    `json:"filter"`
	Dead      bool      `json:"dead" doc:"of dead letters; otherwise of the log"`
	Rate      int       `json:"rate" doc:"messages a second; 0 is no limit"`
	By        admin.By  `json:"by"`
	Created   time.Time `json:"created"`
	Finished  time.Time `json:"finished,omitzero"`
	Total     int       `json:"total"`
	Sent      int       `json:"sent"`
	Delivered int       `json:"delivered"`
	Failed    int       `json:"failed"`
}

func replayOf(j *admin.Job) *Replay {
	return &Replay{
		j.ID, j.State, filterOf(&j.Filter), j.Dead, j.Rate, j.By, j.Created.UTC(), j.Finished.UTC(), j.Total, j.Sent, j.Delivered, j.Failed,
	}
}

// Replays is a request for the latest replays.
type Replays struct {
	DB
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

func (s *Server) replays(ctx context.Context, d *database, in *Replays) ([]Replay, error) {
	replays, err := has(d.Replays, "replays")
	if err != nil {
		return nil, err
	}
	jobs, err := replays.Jobs(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	all := make([]Replay, len(jobs))
	for i := range jobs {
		all[i] = *replayOf(&jobs[i])
	}
	return all, nil
}

// ReplayID is the parameter of requests about one replay.
type ReplayID struct {
	DB
	ID int64 `path:"id"`
}

func (s *Server) replay(ctx context.Context, d *database, in *ReplayID) (*Replay, error) {
	replays, err := has(d.Replays, "replays")
	if err != nil {
		return nil, err
	}
	job, err := replays.Job(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return replayOf(&job), nil
}

// ReplayAct is a request to pause, resume or cancel a replay.
type ReplayAct struct {
	ReplayID
	Body *Reason
}

func (s *Server) pauseReplay(ctx context.Context, d *database, in *ReplayAct) (*Done, error) {
	return s.setReplay(ctx, d, in, "paused", "pause")
}

func (s *Server) resumeReplay(ctx context.Context, d *database, in *ReplayAct) (*Done, error) {
	return s.setReplay(ctx, d, in, "running", "resume")
}

func (s *Server) cancelReplay(ctx context.Context, d *database, in *ReplayAct) (*Done, error) {
	return s.setReplay(ctx, d, in, "cancelled", "cancel")
}

func (s *Server) setReplay(ctx context.Context, d *database, in *ReplayAct, state, verb string) (*Done, error) {
	replays, err := has(d.Replays, "replays")
	if err != nil {
		return nil, err
	}
	if err := replays.SetReplay(ctx, by(ctx, in.Body.why()), in.ID, state); err != nil {
		return nil, err
	}
	job, err := replays.Job(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	s.acted(ctx, d, "replay "+state, in.Body.why(), "replay", in.ID)
	if state == "running" {
		s.carryOn(d, job)
	}
	number := strconv.FormatInt(in.ID, 10)
	return &Done{Count: job.Total, Command: d.command("replay "+verb, append([]string{number}, reason(in.Body.why())...)...), Job: replayOf(&job)}, nil
}

// carryOn runs a replay in the background. If the console stops, it leaves the replay paused, so
// that another process can resume it.
func (s *Server) carryOn(d *database, job admin.Job) {
	s.work.start(func(ctx context.Context) {
		_, err := d.Replays.RunReplay(ctx, job.ID, func(admin.Job) {})
		if err == nil {
			return
		}
		log := s.cfg.Logger.With("database", d.Name, "replay", job.ID)
		if ctx.Err() == nil {
			log.Error("console: replay failed", "err", s.scrub(err.Error()), "next", d.command("replay resume", strconv.FormatInt(job.ID, 10)))
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := d.Replays.SetReplay(ctx, admin.By{Who: job.By.Who, Why: "the console has stopped"}, job.ID, "paused"); err != nil {
			log.Error("console: replay not paused", "err", s.scrub(err.Error()))
		}
	})
}
