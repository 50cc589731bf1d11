package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/reconcile"
)

// reconcilers implements [reconcile.Store] over either driver.
type reconcilers[Tx any] struct {
	db  database[Tx]
	cfg Config
}

// Times travel as microseconds since 1970, which every driver reads the same way.
const (
	asMicros   = "(extract(epoch FROM %s) * 1000000)::bigint"
	fromMicros = "(timestamptz 'epoch' + %s::bigint * interval '1 microsecond')"
	toInterval = "(%s::bigint * interval '1 microsecond')"
)

func micros(expression string) string { return fmt.Sprintf(asMicros, expression) }

func reconcilerError(err error) error { return fmt.Errorf("postgres: reconciler: %w", explain(err)) }

// Announce implements [reconcile.Store].
func (p *reconcilers[Tx]) Announce(ctx context.Context, job, schedule string, first func(time.Time) time.Time) error {
	var now int64
	var known bool
	err := p.db.row(ctx, p.cfg.in("SELECT "+micros("clock_timestamp()")+`,
		EXISTS (SELECT FROM @schema@.reconcilers p WHERE p.name = $1 AND p.schedule = $2)`), []any{job, schedule}, &now, &known)
	if err != nil {
		return reconcilerError(err)
	}
	if known {
		return nil
	}
	_, err = p.db.exec(ctx, p.cfg.in(`INSERT INTO @schema@.reconcilers AS p (name, schedule, next_at)
		VALUES ($1, $2, `+fmt.Sprintf(fromMicros, "$3")+`) ON CONFLICT (name) DO UPDATE
		SET schedule = excluded.schedule, next_at = excluded.next_at WHERE p.schedule <> excluded.schedule`),
		job, schedule, first(time.UnixMicro(now).UTC()).UnixMicro())
	if err != nil {
		return reconcilerError(err)
	}
	return nil
}

// Claim implements [reconcile.Store].
func (p *reconcilers[Tx]) Claim(ctx context.Context, job, holder string, lease time.Duration, now bool) (reconcile.Claim, error) {
	c := reconcile.Claim{Job: job, Holder: holder, Lease: lease}
	var at int64
	var wait *int64
	var heldBy *string
	err := p.db.row(ctx, p.cfg.in("SELECT c.new_token, "+micros("c.at")+", "+micros("c.wait")+`, c.held_by
		FROM @schema@.claim_reconciler($1, $2, `+fmt.Sprintf(toInterval, "$3")+", $4) c"),
		[]any{job, holder, lease.Microseconds(), now}, &c.Token, &at, &wait, &heldBy)
	switch {
	case err != nil:
		return c, reconcilerError(err)
	case c.Token < 0:
		return c, fmt.Errorf("%w: %q", reconcile.ErrNoJob, job)
	case c.Token == 0:
		return c, &reconcile.NotYetError{Job: job, Holder: value(heldBy), Wait: time.Duration(value(wait)) * time.Microsecond}
	}
	c.Now = time.UnixMicro(at).UTC()
	return c, nil
}

// Count implements [reconcile.Store].
func (p *reconcilers[Tx]) Count(ctx context.Context, tx Tx, c reconcile.Claim, n reconcile.Counts) error {
	return p.fenced(ctx, p.db.in(tx), "SELECT @schema@.count_reconciler($1, $2, $3, $4)", c.Job, c.Token, n.Found, n.Fixed)
}

// Finish implements [reconcile.Store].
func (p *reconcilers[Tx]) Finish(ctx context.Context, c reconcile.Claim, next time.Time, forget time.Duration, failure string) error {
	var at *int64
	if !next.IsZero() {
		n := next.UnixMicro()
		at = &n
	}
	var why *string
	if failure != "" {
		why = &failure
	}
	return p.fenced(ctx, p.db, "SELECT @schema@.finish_reconciler($1, $2, "+fmt.Sprintf(fromMicros, "$3")+", "+fmt.Sprintf(toInterval, "$4")+", $5)",
		c.Job, c.Token, at, forget.Microseconds(), why)
}

// fenced runs a statement that returns false if another claim has replaced this one.
func (p *reconcilers[Tx]) fenced(ctx context.Context, s statements, statement string, args ...any) error {
	var ours bool
	if err := s.row(ctx, p.cfg.in(statement), args, &ours); err != nil {
		return reconcilerError(err)
	}
	if !ours {
		return reconcile.ErrLost
	}
	return nil
}

// Again implements [reconcile.Store].
func (p *reconcilers[Tx]) Again(ctx context.Context, tx Tx, c reconcile.Claim, keys []string, a reconcile.Again) ([]int, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	first := 0
	if a.AtOnce {
		first = min(1, a.Max)
	}
	var text string
	err = p.db.in(tx).row(ctx, p.cfg.in("SELECT @schema@.again_reconciler($1, $2, $3, "+fmt.Sprintf(toInterval, "$4")+", $5)"),
		[]any{c.Job, string(list), int64(a.Max), a.After.Microseconds(), int64(first)}, &text)
	if err != nil {
		return nil, reconcilerError(err)
	}
	numbers := make([]int, 0, len(keys))
	for field := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, reconcilerError(err)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) != len(keys) {
		return nil, reconcilerError(errors.New("not every key was answered for"))
	}
	return numbers, nil
}

// Jobs implements [reconcile.Store].
func (p *reconcilers[Tx]) Jobs(ctx context.Context) ([]reconcile.State, error) {
	var (
		all                           []reconcile.State
		s                             reconcile.State
		next                          int64
		until, started, finished      *int64
		holder, lastHolder, lastError *string
	)
	err := p.db.rows(ctx, p.cfg.in("SELECT p.name, p.schedule, "+micros("p.next_at")+`,
		CASE WHEN p.until > clock_timestamp() THEN p.holder END, `+micros("CASE WHEN p.until > clock_timestamp() THEN p.until END")+`,
		p.runs, p.failed, p.found, p.fixed, `+micros("p.last_started")+", "+micros("p.last_finished")+`,
		p.last_holder, p.last_found, p.last_fixed, p.last_error FROM @schema@.reconcilers p ORDER BY p.name COLLATE "C"`), nil,
		[]any{&s.Job, &s.Schedule, &next, &holder, &until, &s.Runs, &s.Failed, &s.Total.Found, &s.Total.Fixed, &started, &finished,
			&lastHolder, &s.Last.Found, &s.Last.Fixed, &lastError},
		func() error {
			s.Next, s.Holder, s.Until = time.UnixMicro(next).UTC(), value(holder), momentOf(until)
			s.Last.Started, s.Last.Finished = momentOf(started), momentOf(finished)
			s.Last.Holder, s.Last.Error = value(lastHolder), value(lastError)
			all = append(all, s)
			return nil
		})
	if err != nil {
		return nil, reconcilerError(err)
	}
	return all, nil
}

func momentOf(micros *int64) time.Time {
	if micros == nil {
		return time.Time{}
	}
	return time.UnixMicro(*micros).UTC()
}
