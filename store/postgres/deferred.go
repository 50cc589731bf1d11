package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/feeds"
)

var errForeignBatch = errors.New("postgres: the batch was not read from this store, or belongs to a shard that this relay no longer owns")

// Defer implements [feeds.Deferrer].
func (f *feed) Defer(ctx context.Context, msgs []feeds.Deferral) error {
	var (
		held     []int16
		shards   []int16
		seqs     []int64
		statuses []string
		blocking []bool
		attempts []int32
		delays   []float64
		causes   []string
		names    []string
		bares    []bool
		ages     []*float64
	)
	for _, m := range msgs {
		seq, err := seqOf(m.Batch, m.Index)
		if err != nil {
			return err
		}
		held = append(held, int16(m.Batch.Shard))
		shards = append(shards, int16(m.Batch.Cursor.(*page).shard.base)) //nolint:errcheck // seqOf has checked it
		seqs = append(seqs, seq)
		statuses = append(statuses, string(m.Status))
		blocking = append(blocking, m.Blocking)
		attempts = append(attempts, int32(m.Attempts))
		delays = append(delays, m.Delay.Seconds())
		causes = append(causes, clean(m.Cause))
		names = append(names, storable(m.Name))
		bares = append(bares, m.Bare)
		ages = append(ages, ageOf(m.Sent))
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err := f.exec(ctx, "SELECT @schema@.defer($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
		f.name, f.id.String(), held, shards, seqs, statuses, blocking, attempts, delays, causes, names, bares, ages)
	if err != nil {
		return fmt.Errorf("postgres: defer: %w", explain(err))
	}
	return nil
}

// ageOf returns the seconds since a time; nil if it is zero.
func ageOf(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	return new(time.Since(t).Seconds())
}

func seqOf(b *feeds.Batch, index int) (int64, error) {
	p, ok := b.Cursor.(*page)
	if !ok || index < 0 || index >= len(p.seqs) {
		return 0, errForeignBatch
	}
	return p.seqs[index], nil
}

// Blocked implements [feeds.Deferrer].
func (f *feed) Blocked(ctx context.Context, shard int) ([]string, error) {
	rows, err := f.pool.Query(ctx, f.cfg.in(`SELECT DISTINCT order_key FROM @schema@.deferred
		WHERE feed = $1 AND shard = coalesce((SELECT base FROM @schema@.slices WHERE feed = $1 AND shard = $2), $2) AND blocking`),
		pgx.QueryExecModeExec, f.name, shard)
	if err != nil {
		return nil, fmt.Errorf("postgres: blocked keys: %w", explain(err))
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("postgres: blocked keys: %w", explain(err))
	}
	return keys, nil
}

// Due implements [feeds.Deferrer].
func (f *feed) Due(ctx context.Context, want feeds.DueRequest) (feeds.Due, error) {
	var (
		held   []int16
		names  []string
		probes []bool
		afters []int64
	)
	for _, h := range want.Held {
		held = append(held, int16(h.Shard))
		names = append(names, storable(h.Name))
		probes = append(probes, h.Probe)
		afters = append(afters, h.After)
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	due := feeds.Due{Next: -1}
	rows, err := f.pool.Query(ctx, f.cfg.in("SELECT "+deferredColumns+" FROM @schema@.due($1, $2, $3, $4, $5, $6, $7, $8) d"),
		pgx.QueryExecModeExec, f.name, smallints(want.Shards), want.Limit, want.Bytes, held, names, probes, afters)
	if err != nil {
		return due, fmt.Errorf("postgres: due: %w", explain(err))
	}
	first, stop := true, ""
	for rows.Next() {
		var row deferredRow
		if err := rows.Scan(row.targets()...); err != nil {
			rows.Close()
			return due, fmt.Errorf("postgres: due: %w", err)
		}
		if first {
			if first = false; row.attempts != nil {
				due.Next = time.Duration(*row.attempts) * time.Millisecond
			}
			continue
		}
		d := row.deferred()
		// The messages behind the first one of a key are normally waiting. One that has another
		// status, such as retry, blocks those after it.
		last := len(due.Messages) - 1
		behind := last >= 0 && d.Blocking && due.Messages[last].Blocking && due.Messages[last].OrderKey() == d.OrderKey()
		if behind && d.Status != feeds.StatusWaiting {
			stop = d.OrderKey()
		}
		if stop != "" && d.Blocking && stop == d.OrderKey() {
			continue
		}
		stop = ""
		due.Messages = append(due.Messages, d)
	}
	if err := rows.Err(); err != nil {
		return due, fmt.Errorf("postgres: due: %w", explain(err))
	}
	return due, nil
}

// Conclude implements [feeds.Deferrer].
func (f *feed) Conclude(ctx context.Context, done []feeds.Conclusion) ([]string, error) {
	var (
		shards    []int16
		seqs      []int64
		delivered []bool
		statuses  []string
		attempts  []int32
		delays    []float64
		causes    []string
		names     []string
		overtaken []bool
		ages      []*float64
	)
	for _, c := range done {
		shards = append(shards, int16(c.Shard))
		seqs = append(seqs, c.Seq)
		delivered = append(delivered, c.Delivered)
		statuses = append(statuses, string(c.Status))
		attempts = append(attempts, int32(c.Attempts))
		delays = append(delays, c.Delay.Seconds())
		causes = append(causes, clean(c.Cause))
		names = append(names, storable(c.Name))
		overtaken = append(overtaken, c.Overtaken)
		ages = append(ages, ageOf(c.Sent))
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, err := f.pool.Query(ctx, f.cfg.in("SELECT @schema@.conclude($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"),
		pgx.QueryExecModeExec, f.name, f.id.String(), shards, seqs, delivered, statuses, attempts, delays, causes, names, overtaken, ages)
	if err != nil {
		return nil, fmt.Errorf("postgres: conclude: %w", explain(err))
	}
	free, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("postgres: conclude: %w", explain(err))
	}
	return free, nil
}

// Suspect implements [feeds.Deferrer].
func (f *feed) Suspect(ctx context.Context, start feeds.Start) (started int, err error) {
	shard, seq := start.Shard, start.Seq
	if b := start.Batch; b != nil {
		if seq, err = seqOf(b, start.Index); err != nil {
			return 0, err
		}
		shard = b.Shard
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err = f.pool.QueryRow(ctx, f.cfg.in("SELECT @schema@.suspect($1, $2, $3, $4)"), pgx.QueryExecModeExec,
		f.name, f.id.String(), shard, seq).Scan(&started)
	if err != nil {
		return 0, fmt.Errorf("postgres: suspect: %w", explain(err))
	}
	return started, nil
}

func smallints(ints []int) []int16 {
	small := make([]int16, len(ints))
	for i, n := range ints {
		small[i] = int16(n)
	}
	return small
}

// maxCause is how many bytes of an error's text are kept.
const maxCause = 2000

// clean shortens an error's text and makes it storable: a destination may return anything.
func clean(text string) string {
	if len(text) > maxCause {
		text = text[:maxCause]
	}
	return storable(text)
}

// storable removes what a text column cannot hold: NUL and invalid UTF-8.
func storable(text string) string {
	return string(slices.DeleteFunc([]rune(text), func(r rune) bool { return r == 0 || r == '\uFFFD' }))
}
