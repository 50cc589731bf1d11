package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/reconcile"
)

// Patrol is how a patrol job stands.
type Patrol struct {
	Job      string           `json:"job"`
	Schedule string           `json:"schedule"`
	Next     time.Time        `json:"next,omitzero"`
	Holder   string           `json:"holder,omitempty"`
	Until    time.Time        `json:"until,omitzero"`
	Runs     int64            `json:"runs"`
	Failed   int64            `json:"failed"`
	Total    reconcile.Counts `json:"total"`
	Last     PatrolRun        `json:"last"`
	CanRun   bool             `json:"can_run" doc:"this process can run it"`
}

// PatrolRun is one run.
type PatrolRun struct {
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	Holder   string    `json:"holder,omitempty"`
	Found    int64     `json:"found"`
	Fixed    int64     `json:"fixed"`
	Error    string    `json:"error,omitempty"`
}

func (s *Server) patrols(ctx context.Context, d *database, _ *DB) ([]Patrol, error) {
	patrols, err := has(d.Patrols, "patrols")
	if err != nil {
		return nil, err
	}
	jobs, err := patrols.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Patrol, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		all[i] = Patrol{
			j.Job, j.Schedule, j.Next.UTC(), j.Holder, j.Until.UTC(), j.Runs, j.Failed, j.Total,
			PatrolRun{j.Last.Started.UTC(), j.Last.Finished.UTC(), j.Last.Holder, j.Last.Found, j.Last.Fixed, s.shown(j.Last.Error)},
			d.RunPatrol != nil,
		}
	}
	return all, nil
}

// PatrolAct names a job and says why it is run.
type PatrolAct struct {
	DB
	Job  string `path:"job"`
	Body *Reason
}

// patrolWait is for how long a run is waited for. One that takes longer goes on by itself, and the list shows what came of it.
const patrolWait = 8 * time.Second

func (s *Server) runPatrol(ctx context.Context, d *database, in *PatrolAct) (*Done, error) {
	patrols, err := has(d.Patrols, "patrols")
	if err != nil {
		return nil, err
	}
	if d.RunPatrol == nil {
		return nil, failf(409, d.command("reconcile run", in.Job), "this process runs no patrols")
	}
	jobs, err := patrols.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	known := false
	for i := range jobs {
		known = known || jobs[i].Job == in.Job
	}
	if !known {
		return nil, reconcile.ErrNoJob
	}
	type outcome struct {
		counts reconcile.Counts
		err    error
	}
	ended := make(chan outcome, 1)
	who := by(ctx, in.Body.why())
	s.work.start(func(ctx context.Context) {
		counts, err := d.RunPatrol(ctx, who, in.Job)
		ended <- outcome{counts, err}
	})
	s.acted(ctx, d, "patrol run", in.Body.why(), "job", in.Job)
	done := &Done{Command: d.commandOn("reconcile run", in.Job, reason(in.Body.why())...)}
	wait := time.NewTimer(patrolWait)
	defer wait.Stop()
	select {
	case o := <-ended:
		done.Count = int(o.counts.Fixed)
		return done, o.err
	case <-wait.C:
		return done, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
