package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// ledgerRow is the newest row of a shard.
type ledgerRow struct {
	n       int64
	at      cursor
	crashes int       // owners in a row that disappeared without progress
	unsure  time.Time // since then something may have been sent that is not settled; zero if nothing was
	slice
}

// slice is the part of the log that a cursor covers.
type slice struct {
	base   int    // the shard
	tenant string // if not empty, the only tenant that it covers
	others string // if not empty, a JSON array of the tenants that have slices of their own
}

// ledgerState is what the ledger says about a feed.
type ledgerState struct {
	held       map[int]ledgerRow // owned by this member
	generation string
	shards     int
	stop       *stop
}

// stop is the position at which all shards of a feed wait for each other before the number of
// shards changes.
type stop struct {
	point
	hi int64 // the snapshot sees nothing above it
}

// askBalance announces the member and returns its share and the state of the ledger.
func (f *feed) askBalance(ctx context.Context) (share feeds.Share, state ledgerState, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, err := f.pool.Query(ctx, f.cfg.in("SELECT * FROM @schema@.balance($1, $2, $3, $4, nullif($5, ''))"), pgx.QueryExecModeExec,
		f.name, f.id.String(), f.member.Name, leaseText(f.member.Lease), f.cfg.Home)
	if err != nil {
		return share, state, err
	}
	state.held = map[int]ledgerRow{}
	var (
		shard             *int
		n, lo, lo2        *int64
		starts, starts2   []int64
		last, hi          *int64
		s1, s2            *string
		quota, memberSize int
		crashes, base     *int
		tenant, others    *string
		excluded          []pgtype.UUID
		stopS             *string
		stopLo, stopHi    *int64
		stopStarts        []int64
		unsure            *int64
		id                *string
	)
	_, err = pgx.ForEachRow(rows, []any{&shard, &n, &s1, &lo, &starts, &s2, &lo2, &starts2, &last, &hi, &quota, &memberSize, &state.generation,
		&crashes, &share.Deferred, &share.Paused, &base, &tenant, &others, &excluded, &state.shards,
		&share.Moving, &stopS, &stopLo, &stopStarts, &stopHi, &unsure, &id}, func() error {
		share.Quota, share.Members, share.ID = quota, memberSize, value(id)
		if stopS != nil {
			state.stop = &stop{storedPoint(*stopS, *stopLo, stopStarts), *stopHi}
		}
		for _, id := range excluded {
			share.Excluded = append(share.Excluded, postrider.ID(id.Bytes))
		}
		if shard == nil {
			return nil
		}
		row := ledgerRow{n: *n, at: cursor{from: storedPoint(*s1, *lo, starts)}, crashes: *crashes, slice: slice{*base, value(tenant), value(others)}}
		if unsure != nil {
			row.unsure = time.Now().Add(-time.Duration(*unsure) * time.Millisecond)
		}
		if s2 != nil {
			row.at.to, row.at.last, row.at.hi = storedPoint(*s2, *lo2, starts2), *last, *hi
		}
		state.held[*shard] = row
		return nil
	})
	if f.pool.refused(err) {
		return f.askBalance(ctx)
	}
	return share, state, err
}

// ledgerEntry is a set of rows to append, one for each shard.
type ledgerEntry struct {
	generation string
	release    bool
	shards     []int
	owned      []*ownedShard
	n          []int64
	at         []cursor
}

func (e *ledgerEntry) add(shard int, l *ownedShard, at cursor) {
	e.shards = append(e.shards, shard)
	e.owned = append(e.owned, l)
	e.n = append(e.n, l.n+1)
	e.at = append(e.at, at)
}

// askSettle appends the rows. It returns the shards for which that succeeded: those that this
// member still owns.
func (f *feed) askSettle(ctx context.Context, e *ledgerEntry) (map[int]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var shards, n, s1, lo, starts, s2, lo2, starts2, last, hi, crashes, sent array
	for i, c := range e.at {
		shards.int(int64(e.shards[i]))
		n.int(e.n[i])
		s1.snapshot(c.from.snapshot)
		lo.int(c.from.lo)
		starts.string(c.from.startsText())
		s2.snapshot(c.to.snapshot)
		lo2.int(c.to.lo)
		starts2.string(c.to.startsText())
		last.int(c.last)
		hi.int(c.hi)
		crashes.int(int64(e.owned[i].crashes))
		sent.int(age(e.owned[i].sent))
	}
	rows, err := f.pool.Query(ctx, f.cfg.in("SELECT @schema@.settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"),
		pgx.QueryExecModeExec, f.name, f.id.String(), leaseText(f.member.Lease), e.generation, e.release,
		shards.String(), n.String(), s1.String(), lo.String(), starts.String(), s2.String(), lo2.String(), starts2.String(), last.String(),
		hi.String(), crashes.String(), sent.String())
	if err != nil {
		return nil, err
	}
	kept := map[int]bool{}
	var shard int
	_, err = pgx.ForEachRow(rows, []any{&shard}, func() error {
		kept[shard] = true
		return nil
	})
	return kept, err
}

// age returns how many milliseconds ago a time was, and -1 for the zero time.
func age(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return max(0, time.Since(t).Milliseconds())
}

func (f *feed) exec(ctx context.Context, sql string, args ...any) error {
	_, err := f.pool.Exec(ctx, f.cfg.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
	return err
}

func isReset(err error) bool { return errors.Is(err, feeds.ErrReset) }
