package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// StartReplay implements [admin.Replays].
func (d *Admin) StartReplay(ctx context.Context, by admin.By, r admin.Replay) (admin.Job, error) {
	if r.DedupWindow == 0 {
		r.DedupWindow = 7 * 24 * time.Hour
	}
	if !r.Dead && r.Filter.Feed == "" {
		return admin.Job{}, &admin.RefusedError{Reason: "which feed is to send the messages again is not said", Remedy: "name one with --feed"}
	}
	w, table := d.replaySource(&r)
	var total int
	var oldest *time.Time
	var until *int64
	err := d.pool.QueryRow(ctx, d.cfg.in("SELECT count(*), min(d.created_at), max(d.seq) FROM "+table+" d"+w.String()),
		append([]any{pgx.QueryExecModeExec}, w.args...)...).Scan(&total, &oldest, &until)
	if err != nil {
		return admin.Job{}, fmt.Errorf("postgres: replay: %w", explain(err))
	}
	if age := time.Since(value(oldest)); total > 0 && !r.Dead && age > r.DedupWindow && !r.Force {
		return admin.Job{}, &admin.RefusedError{
			Reason: fmt.Sprintf("the oldest message was enqueued %s ago, but consumers remember only %s of what they have seen: they would "+
				"take it for new", age.Round(time.Second), r.DedupWindow),
			Remedy: "choose later ones with --since, or use --force if repeated effects do no harm",
		}
	}
	filter, err := json.Marshal(r.Filter)
	if err != nil {
		return admin.Job{}, err
	}
	var id int64
	err = d.change(ctx, &id, "SELECT @schema@.start_replay($1, $2, $3, $4::jsonb, $5, $6, $7)",
		by.Who, by.Why, r.Dead, jsonText(filter), r.Rate, total, value(until))
	if err != nil {
		return admin.Job{}, fmt.Errorf("postgres: replay: %w", explain(err))
	}
	return d.Job(ctx, id)
}

// replaySource returns the condition and the table from which a replay selects its messages.
func (d *Admin) replaySource(r *admin.Replay) (*where, string) {
	if r.Dead {
		if len(r.Filter.Statuses) == 0 {
			r.Filter.Statuses = []feeds.Status{feeds.StatusDead}
		}
		return deferredWhere(&r.Filter), "@schema@.deferred"
	}
	w := logWhere(&r.Filter)
	w.add("d.type <> %s", feeds.CanaryType) // a resent canary would be deferred, and relays publish what is deferred
	w.add(`EXISTS (SELECT FROM @schema@.cursors c WHERE c.feed = %s AND c.base = @schema@.shard_of(d.key, d.aggregate_type, d.aggregate_id, d.id, c.shards)
		AND @schema@.covers(c.tenant, c.others, d.tenant_id) AND @schema@.settled(d.xid, d.seq, c.s1, c.s2, c.last))`, r.Filter.Feed)
	return w, "@schema@.messages"
}

// StepReplay hands up to n more messages of a running job to the relays, in the order of the log,
// each once. The returned job does not count delivered and failed messages.
func (d *Admin) StepReplay(ctx context.Context, id int64, n int) (admin.Job, error) {
	err := pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var (
			r      admin.Replay
			filter []byte
			feed   *string
			seq    *int64
			until  int64
			state  string
		)
		// The row lock keeps two runners of one job from sending the same messages.
		err := tx.QueryRow(ctx, d.cfg.in("SELECT dead, filter, state, at_feed, at_seq, until_seq FROM @schema@.claim_replay($1)"),
			pgx.QueryExecModeExec, id).Scan(&r.Dead, &filter, &state, &feed, &seq, &until)
		if err != nil || state != "running" {
			return err
		}
		if err := json.Unmarshal(filter, &r.Filter); err != nil {
			return err
		}
		w, table := d.replaySource(&r)
		w.add("d.seq <= %s", until)
		order, column := "d.seq", "''"
		if r.Dead {
			order, column = "d.feed, d.seq", "d.feed"
			if seq != nil {
				w.add("(d.feed, d.seq) > (%s, %s)", value(feed), *seq)
			}
		} else if seq != nil {
			w.add("d.seq > %s", *seq)
		}
		rows, err := tx.Query(ctx, d.cfg.in("SELECT "+column+", d.seq FROM "+table+" d"+w.String()+" ORDER BY "+order+" LIMIT "+w.arg(n)),
			append([]any{pgx.QueryExecModeExec}, w.args...)...)
		if err != nil {
			return err
		}
		var names []string
		var seqs []int64
		var f string
		var s int64
		if _, err := pgx.ForEachRow(rows, []any{&f, &s}, func() error {
			names, seqs = append(names, f), append(seqs, s)
			return nil
		}); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, d.cfg.in("SELECT @schema@.step_replay($1, $2, $3, $4)"), pgx.QueryExecModeExec, id, names, seqs, len(seqs) < n)
		return err
	})
	if err != nil {
		return admin.Job{}, fmt.Errorf("postgres: replay: %w", explain(err))
	}
	return d.job(ctx, id, "0, 0")
}

// SetReplay implements [admin.Replays].
func (d *Admin) SetReplay(ctx context.Context, by admin.By, id int64, state string) error {
	done, err := d.ask(ctx, "replay", "SELECT @schema@.set_replay($1, $2, $3, $4)", by.Who, by.Why, id, state)
	if err == nil && !done {
		return &admin.RefusedError{Reason: fmt.Sprintf("there is no replay %d that could go on", id), Remedy: "postrider replay ls shows them"}
	}
	return err
}

// results counts the delivered and the failed messages of a job.
const results = `(SELECT count(*) FROM @schema@.job_results r WHERE r.job = j.id AND r.error IS NULL),
	(SELECT count(*) FROM @schema@.job_results r WHERE r.job = j.id AND r.error IS NOT NULL)`

// Job implements [admin.Replays].
func (d *Admin) Job(ctx context.Context, id int64) (admin.Job, error) { return d.job(ctx, id, results) }

func (d *Admin) job(ctx context.Context, id int64, counts string) (admin.Job, error) {
	jobs, err := d.jobs(ctx, counts, "WHERE j.id = $1", id)
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("postgres: there is no replay %d: %w", id, admin.ErrNoMessage)
	}
	if err != nil {
		return admin.Job{}, err
	}
	return jobs[0], nil
}

// Jobs implements [admin.Replays].
func (d *Admin) Jobs(ctx context.Context, limit int) ([]admin.Job, error) {
	return d.jobs(ctx, results, "ORDER BY j.id DESC LIMIT $1", limit)
}

func (d *Admin) jobs(ctx context.Context, counts, which string, arg any) ([]admin.Job, error) {
	rows, err := d.query(ctx, `SELECT j.id, j.state, j.dead, j.filter, j.rate, j.who, j.why, j.created, j.finished, j.total, j.sent, j.missing, `+counts+`
		FROM @schema@.jobs j `+which, arg)
	if err != nil {
		return nil, fmt.Errorf("postgres: replays: %w", err)
	}
	jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (admin.Job, error) {
		var j admin.Job
		var filter []byte
		var finished *time.Time
		err := row.Scan(&j.ID, &j.State, &j.Dead, &filter, &j.Rate, &j.By.Who, &j.By.Why, &j.Created, &finished, &j.Total, &j.Sent,
			&j.Missing, &j.Delivered, &j.Failed)
		if err != nil {
			return j, err
		}
		j.Created, j.Finished = j.Created.UTC(), value(finished).UTC()
		return j, json.Unmarshal(filter, &j.Filter)
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: replays: %w", explain(err))
	}
	return jobs, nil
}
