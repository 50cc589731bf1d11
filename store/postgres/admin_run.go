package postgres

import (
	"context"
	"time"

	"github.com/postrider/postrider/admin"
)

const (
	runTick = 50 * time.Millisecond // between two steps of a replay with a rate
	runStep = 2000                  // messages in a step
)

// RunReplay implements [admin.Replays]. It calls progress after each step.
func (d *Admin) RunReplay(ctx context.Context, id int64, progress func(admin.Job)) (admin.Job, error) {
	job, err := d.Job(ctx, id)
	start, before := time.Now(), job.Sent
	for err == nil && job.State == "running" {
		n := runStep
		if job.Rate > 0 {
			n = int(time.Since(start).Seconds()*float64(job.Rate)) - (job.Sent - before)
			// Catch up on at most one second's messages, so that no burst follows a stall.
			if n > job.Rate {
				start = start.Add(time.Duration(n-job.Rate) * time.Second / time.Duration(job.Rate))
				n = job.Rate
			}
		}
		if n > 0 {
			if job, err = d.StepReplay(ctx, id, min(n, runStep)); err == nil {
				progress(job)
			}
		}
		if job.Rate == 0 || n >= runStep || err != nil {
			continue
		}
		select {
		case <-time.After(runTick):
		case <-ctx.Done():
			return job, ctx.Err()
		}
	}
	return job, err
}
