package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/reconcile"
)

// Reconciler is the state of a reconciler.
type Reconciler struct {
	Job      string           `json:"job"`
	Schedule string           `json:"schedule"`
	Next     time.Time        `json:"next,omitzero"`
	Holder   string           `json:"holder,omitempty"`
	Until    time.Time        `json:"until,omitzero"`
	Runs     int64            `json:"runs"`
	Failed   int64            `json:"failed"`
	Total    reconcile.Counts `json:"total"`
	Last     ReconcilerRun    `json:"last"`
	CanRun   bool             `json:"can_run" doc:"this process can run it"`
}

// ReconcilerRun is a run of a reconciler.
type ReconcilerRun struct {
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	Holder   string    `json:"holder,omitempty"`
	Found    int64     `json:"found"`
	Fixed    int64     `json:"fixed"`
	Error    string    `json:"error,omitempty"`
}

func (s *Server) reconcilers(ctx context.Context, d *database, _ *DB) ([]Reconciler, error) {
	reconcilers, err := has(d.Reconcilers, "reconcilers")
	if err != nil {
		return nil, err
	}
	jobs, err := reconcilers.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Reconciler, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		all[i] = Reconciler{
			j.Job, j.Schedule, j.Next.UTC(), j.Holder, j.Until.UTC(), j.Runs, j.Failed, j.Total,
			ReconcilerRun{j.Last.Started.UTC(), j.Last.Finished.UTC(), j.Last.Holder, j.Last.Found, j.Last.Fixed, s.shown(j.Last.Error)},
			d.RunReconciler != nil,
		}
	}
	return all, nil
}

// ReconcilerAct is a request to run a reconciler.
type ReconcilerAct struct {
	DB
	Job  string `path:"job"`
	Body *Reason
}

// reconcilerWait is how long a request waits for a run. A longer run continues in the background,
// and the list shows its result.
const reconcilerWait = 8 * time.Second

func (s *Server) runReconciler(ctx context.Context, d *database, in *ReconcilerAct) (*Done, error) {
	reconcilers, err := has(d.Reconcilers, "reconcilers")
	if err != nil {
		return nil, err
	}
	if d.RunReconciler == nil {
		return nil, failf(409, d.command("reconcile run", in.Job), "this process runs no reconcilers")
	}
	jobs, err := reconcilers.Jobs(ctx)
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
		counts, err := d.RunReconciler(ctx, who, in.Job)
		ended <- outcome{counts, err}
	})
	s.acted(ctx, d, "reconciler run", in.Body.why(), "job", in.Job)
	done := &Done{Command: d.commandOn("reconcile run", in.Job, reason(in.Body.why())...)}
	wait := time.NewTimer(reconcilerWait)
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
