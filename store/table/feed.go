package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

var errClosed = errors.New("table: feed is closed")

// feed is one membership. The fence is the lease's row: a member that takes a shard over changes the token there, and every change that
// a member makes begins by locking the row with its own.
type feed struct {
	store  *feedStore
	t      *table
	name   string
	member feeds.Member
	id     string // the member's own

	mu            sync.Mutex // guards what follows, and the shards
	owned         map[int]*ownedShard
	closed        bool
	turn          int       // which shard a read begins with
	noted         time.Time // when the feed's entry last heard of progress
	manualChecked time.Time // when rows were last held against what was written about them
	size          int       // of messages lately, in bytes
	begun         begunRow  // what the member has noted last as about to be sent
}

func (f *feed) cfg() *Config { return &f.store.cfg }

// Close implements [feeds.Feed].
func (f *feed) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	_, err := f.cfg().stmt("DELETE FROM {members} WHERE feed = ").Word(f.name).SQL(" AND member = ").Text(f.id).Exec(ctx, f.store.db)
	if err != nil {
		return fmt.Errorf("table: close: %w", err)
	}
	return nil
}

// fenced runs do in a transaction in which nobody else can take the shards. It gets those that the member holds; the others are
// lost. It may run more than once, if others were in the way.
func (f *feed) fenced(ctx context.Context, shards []int, do func(tx *sql.Tx, held []int) error) error {
	f.mu.Lock()
	closed, tokens := f.closed, make(map[int]int64)
	for _, s := range shards {
		if l := f.owned[s]; l != nil {
			tokens[s] = l.token
		}
	}
	f.mu.Unlock()
	if closed {
		return errClosed
	}
	if len(tokens) == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return f.store.do(ctx, func(tx *sql.Tx) error {
		held, err := f.lock(ctx, tx, tokens)
		if err != nil {
			return err
		}
		return do(tx, held)
	})
}

// lock locks the leases that the member holds with these tokens, and returns their shards.
func (f *feed) lock(ctx context.Context, tx *sql.Tx, tokens map[int]int64) (held []int, err error) {
	err = f.cfg().eachLease(ctx, tx, f.name, slices.Collect(maps.Keys(tokens)), func(shard int, token int64, holder string) {
		if holder == f.id && tokens[shard] == token {
			held = append(held, shard)
		}
	})
	return held, err
}

// eachLease locks leases until the transaction ends, in one order, so that nobody waits in a circle. MySQL gets a condition for
// each: with a list it may look at all leases of the feed, and wait for those that others have locked.
func (c *Config) eachLease(ctx context.Context, tx sqltext.Querier, feed string, shards []int, each func(shard int, token int64, holder string)) error {
	if len(shards) == 0 {
		return nil
	}
	slices.Sort(shards)
	const columns = "SELECT shard, token, holder FROM {leases} WHERE feed = "
	s := c.stmt()
	if c.Dialect == sqltext.PostgreSQL {
		s.SQL(columns).Word(feed).SQL(" AND ").Numbers("shard", "smallint", shards).SQL(" ORDER BY shard FOR UPDATE")
	} else {
		for i, shard := range shards {
			if i > 0 {
				s.SQL(" UNION ALL ")
			}
			s.SQL("(", columns).Word(feed).SQL(" AND shard = ").Number(int64(shard)).SQL(" FOR UPDATE)")
		}
	}
	return s.Each(ctx, tx, func(scan func(...any) error) error {
		var shard int
		var token int64
		var holder sql.NullString
		err := scan(&shard, &token, &holder)
		each(shard, token, holder.String)
		return err
	})
}
