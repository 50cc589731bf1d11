package points

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// replayStep is how many messages a replay sends per step.
const replayStep = 8

// runReplay runs an operator's process: it replays delivered messages or dead letters, and ends.
// After a failure it checks whether the job exists and resumes it.
func runReplay(ctx context.Context, p part, gate *tap.Gate) error {
	pool, db, err := p.database(ctx, gate)
	if err != nil {
		return err
	}
	defer pool.Close()
	operator := operator{db.Admin(), p}
	work := operator.replay
	if p.Acts {
		work = operator.retry
	}
	for {
		done, err := work(ctx)
		if done || ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.logger().Warn("trying again", "err", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

type operator struct {
	admin *postgres.Admin
	part
}

// replay reports whether the job is done.
func (o operator) replay(ctx context.Context) (bool, error) {
	jobs, err := o.admin.Jobs(ctx, 10)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(jobs, func(j admin.Job) bool { return j.By.Why == o.Name })
	if at < 0 && o.Joins {
		return false, nil
	}
	var job admin.Job
	if at >= 0 {
		job = jobs[at]
	} else {
		job, err = o.admin.StartReplay(ctx, admin.By{Who: "ann", Why: o.Name}, admin.Replay{Filter: admin.Filter{Feed: "default"}, Dead: o.Dead})
	}
	if o.Pauses {
		if o.Joins {
			return err == nil && job.State == "done", err
		}
		for _, state := range []string{"paused", "running"} {
			if err == nil {
				err = o.set(ctx, job.ID, state)
			}
		}
		job.State = "running"
	}
	for err == nil && job.State == "running" {
		job, err = o.admin.StepReplay(ctx, job.ID, replayStep)
	}
	if err == nil {
		_, err = o.admin.StepReplay(ctx, job.ID, replayStep) // sends nothing more
	}
	return err == nil, err
}

// set pauses or resumes a job, unless the audit log shows that this was done.
func (o operator) set(ctx context.Context, id int64, state string) error {
	entries, err := o.admin.Audit(ctx, "", 0, 10)
	if err != nil || slices.ContainsFunc(entries, func(e admin.Entry) bool { return e.Action == "replay "+state }) {
		return err
	}
	return o.admin.SetReplay(ctx, admin.By{Who: "ann", Why: o.Name}, id, state)
}

// retry retries dead letters by an act, and reports whether none is left.
func (o operator) retry(ctx context.Context) (bool, error) {
	if o.Joins {
		return true, nil // another process is doing it
	}
	filter := admin.Filter{Feed: "default", Statuses: []feeds.Status{feeds.StatusDead}}
	_, err := o.admin.Act(ctx, admin.By{Who: "ann", Why: o.Name}, admin.Retry, filter, 0)
	return err == nil, err
}

// replayScenario has an operator replay what a healthy relay has delivered, or retry its dead
// letters.
func replayScenario(s *servers, name string, change func(*part)) *scenario {
	var told part
	change(&told)
	deadLetters := told.Dead || told.Acts
	return &scenario{
		name: name,
		open: func(t *testing.T, name string) *world {
			w := s.log(t, name, postgres.Layout{Shards: 2, Slots: 3})
			w.broker = s.stream(t, name)
			return w
		},
		part: func(w *world) part {
			p := w.part("replay")
			change(&p)
			if p.Pauses {
				p.Only, p.Limits = true, map[string]int{"pause or cancel the replay": 2, "read the record": 2, "step": 1}
			}
			return p
		},
		before: func(w *world) {
			w.lease = longLease
			w.relay = start(w.t, w.relays())
			if !deadLetters {
				w.round(1)
				w.untilSettled()
				return
			}
			for n := range 2 * replayStep {
				w.enqueue([]string{string(rune('a' + n))}, 1, w.broker.nowhere())
			}
			w.until("dead letters", func() bool {
				return w.number("SELECT count(*) FROM @.deferred WHERE status = 'dead'") == len(w.committed)
			})
			if err := w.broker.open(w.ctx); err != nil {
				w.t.Fatal(err)
			}
		},
		work: func(w *world) {
			w.until("the operator is done", func() bool { return closed(w.first.done) })
		},
		after: func(w *world) {
			w.until("the other operator is done", func() bool { return closed(w.second.done) })
			w.until("nothing is deferred", func() bool { return w.number("SELECT count(*) FROM @.deferred") == 0 })
			if err := w.relay.stop(timeout); err != nil {
				w.t.Errorf("the relay ended with %v", err)
			}
		},
		check: func(w *world, _ tap.Way) {
			n := strconv.Itoa(len(w.committed))
			switch {
			case told.Acts:
				w.checkReplay(w.committed, "retry "+n)
				return
			case told.Pauses:
				w.checkReplay(slices.Repeat(w.committed, 2), "replay "+n, "replay paused 0", "replay running 0")
			case told.Dead:
				w.checkReplay(w.committed, "replay "+n)
			default:
				w.checkReplay(slices.Repeat(w.committed, 2), "replay "+n)
			}
			w.checkJob(n)
		},
	}
}

// checkReplay checks that each message has arrived as often as it should, and that there is one
// audit entry for every action.
func (w *world) checkReplay(want []string, acts ...string) {
	w.t.Helper()
	got, err := w.broker.receipts(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	want = slices.Sorted(slices.Values(want))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Errorf("arrived are %q, want %q", got, want)
	}
	w.checkLedger()
	if records := w.texts("SELECT concat_ws(' ', action, count) FROM @.audit WHERE why = $1 ORDER BY n", w.name); !slices.Equal(records, acts) {
		w.t.Errorf("the record has %q, want %q", records, acts)
	}
}

// checkJob checks that there was one job, and that it has sent everything.
func (w *world) checkJob(n string) {
	w.t.Helper()
	jobs := w.texts(`SELECT concat_ws(' ', state, total, sent, (SELECT count(*) FROM @.job_results r WHERE r.job = j.id AND error IS NULL))
		FROM @.jobs j`)
	if !slices.Equal(jobs, []string{strings.Join([]string{"done", n, n, n}, " ")}) {
		w.t.Errorf("the jobs are %q, want one that has sent %s", jobs, n)
	}
}
