package postgres_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestOldReplaysAreSwept verifies that the results of old replays are deleted, and that a message
// which is still deferred for one is delivered all the same.
func TestOldReplaysAreSwept(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{Shards: 1})
		h.mustDeliver("f", h.enqueue(1))
		d := h.db.Admin()
		replay := func() admin.Job {
			job, err := d.StartReplay(ctx, admin.By{Who: "ann"}, admin.Replay{Filter: admin.Filter{Feed: "f"}})
			if err == nil {
				job, err = d.RunReplay(ctx, job.ID, func(admin.Job) {})
			}
			if err != nil || job.State != "done" {
				t.Fatal(job, err)
			}
			return job
		}
		old := replay()
		h.exec(`INSERT INTO @.job_results (job, seq, id) SELECT id, 1000 + i, gen_random_uuid() FROM @.jobs, generate_series(1, 25000) i;
			UPDATE @.jobs SET finished = finished - interval '31 days'`)
		young := replay() // finds its message deferred already
		if err := h.store.Maintain(ctx); err != nil {
			t.Fatal(err)
		}
		jobs, err := d.Jobs(ctx, 10)
		if err != nil || len(jobs) != 1 || jobs[0].ID != young.ID {
			t.Errorf("replays: %+v, %v; want only %d", jobs, err, young.ID)
		}
		var left int
		if err := h.pool.QueryRow(ctx, h.in("SELECT count(*) FROM @.job_results")).Scan(&left); err != nil || left > 0 {
			t.Errorf("%d results are left; %v", left, err)
		}

		feed := h.open("f")
		defer feed.Close(ctx)
		share, err := feed.Balance(ctx)
		if err != nil {
			t.Fatal(err)
		}
		due, err := feed.(feeds.Deferrer).Due(ctx, feeds.DueRequest{Shards: share.Shards, Limit: 10})
		if err != nil || len(due.Messages) != 1 {
			t.Fatalf("%+v, %v; want the message of replay %d", due, err, old.ID)
		}
		for _, c := range []feeds.Conclusion{{Status: feeds.StatusDead}, {Delivered: true}} {
			c.Shard, c.Seq = due.Messages[0].Shard, due.Messages[0].Seq
			if _, err := feed.(feeds.Deferrer).Conclude(ctx, []feeds.Conclusion{c}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestReplayOfWhatIsGone verifies that a replay does not end as done if the log was emptied before
// all of its messages were sent.
func TestReplayOfWhatIsGone(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, still)
		h.mustDeliver("f", h.enqueue(100))
		d := h.db.Admin()
		job, err := d.StartReplay(ctx, admin.By{Who: "ann"}, admin.Replay{Filter: admin.Filter{Feed: "f"}, Rate: 10})
		if err == nil {
			job, err = d.StepReplay(ctx, job.ID, 10)
		}
		if err != nil || job.Sent != 10 {
			t.Fatal(job, err)
		}
		h.exec("TRUNCATE @.messages")
		job, err = d.RunReplay(ctx, job.ID, func(admin.Job) {})
		if err != nil || job.State != "cancelled" || job.Sent != 10 || job.Missing != 90 || time.Since(job.Finished) > time.Hour {
			t.Errorf("%+v, %v; want it cancelled, with 90 messages missing", job, err)
		}
		entries, err := d.Audit(ctx, "", 0, 1)
		if err != nil || len(entries) != 1 || entries[0].Action != "replay cancelled" {
			t.Errorf("the record says %+v, %v", entries, err)
		}
	})
}

// TestSliceNumbers verifies that numbers of slices are used again, and that a late settle of a
// former slice does not count for the next slice with its number.
func TestSliceNumbers(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		h.open("f").Close(ctx)
		split := func(tenant string) (number int) {
			t.Helper()
			var done bool
			err := h.pool.QueryRow(ctx, h.in("SELECT @.split('f', 0::smallint, $1)"), tenant).Scan(&done)
			if err == nil {
				err = h.pool.QueryRow(ctx, h.in("SELECT shard FROM @.slices WHERE tenant = $1"), tenant).Scan(&number)
			}
			if err != nil || !done {
				t.Fatal(done, err)
			}
			return number
		}
		merge := func(number int) {
			t.Helper()
			var done bool
			if err := h.pool.QueryRow(ctx, h.in("SELECT @.merge('f', $1::smallint)"), number).Scan(&done); err != nil || !done {
				t.Fatal(done, err)
			}
		}
		a, b := split("a"), split("b")
		if a != 2 || b != 3 {
			t.Fatalf("slices %d and %d, want 2 and 3", a, b)
		}
		const late = `INSERT INTO @.checkpoints (feed, shard, n, member, until, s1, lo, starts)
			SELECT feed, shard, n, gen_random_uuid(), now() + interval '1 minute', '1:1:', 0, '{}' FROM late ON CONFLICT DO NOTHING`
		h.exec("CREATE TABLE @.late AS SELECT feed, shard, n FROM @.cursors WHERE tenant = 'a'")
		merge(a)
		if c := split("c"); c != a {
			t.Errorf("the next slice is %d, want %d again", c, a)
		}
		var before, after int64
		const newest = "SELECT n FROM @.cursors WHERE tenant = 'c'"
		if err := h.pool.QueryRow(ctx, h.in(newest)).Scan(&before); err != nil {
			t.Fatal(err)
		}
		h.exec("SET search_path = " + h.cfg.Schema + "; " + late + "; RESET search_path")
		if err := h.pool.QueryRow(ctx, h.in(newest)).Scan(&after); err != nil || before != after {
			t.Errorf("the newest row of the new slice was %d and is %d; %v", before, after, err)
		}
		for range 5 {
			merge(a)
			if again := split("c"); again != a {
				t.Errorf("the next slice is %d, want %d again", again, a)
			}
		}
	})
}
