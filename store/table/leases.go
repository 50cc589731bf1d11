package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

var errRemoved = errors.New("the feed was removed")

// lease is a row of {leases}.
type lease struct {
	shard   int
	token   int64
	mine    bool // it names this member
	free    bool // it names nobody
	over    bool // it has run out, or names nobody
	crashes int
	unsure  sql.NullInt64 // since how many microseconds something may have been sent that is not settled
}

// Balance implements [feeds.Feed].
func (f *feed) Balance(ctx context.Context) (feeds.Share, error) {
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if closed {
		return feeds.Share{}, errClosed
	}
	var share feeds.Share
	var kept, taken []lease
	var owned map[int]*ownedShard
	err := f.store.do(ctx, func(tx *sql.Tx) error {
		var err error
		f.mu.Lock()
		owned = make(map[int]*ownedShard, len(f.owned))
		for shard, l := range f.owned {
			owned[shard] = l
		}
		f.mu.Unlock()
		if err = f.announce(ctx, tx); err != nil {
			return err
		}
		if share, err = f.quota(ctx, tx); err != nil {
			return err
		}
		kept, taken, err = f.take(ctx, tx, share.Quota, owned)
		return err
	})
	if err != nil {
		return feeds.Share{}, fmt.Errorf("table: balance: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := make(map[int]*ownedShard)
	var fresh []lease
	for _, l := range kept {
		if f.owned[l.shard] == nil && owned[l.shard] != nil {
			continue // lost, or given up, meanwhile
		}
		if next[l.shard] = f.owned[l.shard]; next[l.shard] == nil {
			next[l.shard] = newOwnedShard(l.token, l.crashes) // a balance has taken it whose answer was lost
			fresh = append(fresh, l)
		}
	}
	for _, l := range taken {
		next[l.shard] = newOwnedShard(l.token, l.crashes)
	}
	share.Unsure = make(map[int]time.Duration)
	for _, l := range slices.Concat(taken, fresh) {
		if l.unsure.Valid {
			share.Unsure[l.shard] = time.Duration(l.unsure.Int64) * time.Microsecond
		}
	}
	f.owned = next
	share.Terms = make(map[int]int64)
	for shard, l := range f.owned {
		share.Shards = append(share.Shards, shard)
		share.Terms[shard] = l.token
		if l.crashes >= 1 {
			share.Orphans = append(share.Orphans, shard)
		}
		if l.crashes >= 2 {
			share.Suspects = append(share.Suspects, shard)
		}
	}
	slices.Sort(share.Shards)
	slices.Sort(share.Orphans)
	slices.Sort(share.Suspects)
	return share, nil
}

// announce tells the others that the member is there.
func (f *feed) announce(ctx context.Context, tx *sql.Tx) error {
	s := f.cfg().stmt("INSERT INTO {members} (feed, member, name, since, heard_at, expires_at) VALUES (").Word(f.name).SQL(", ").Text(f.id).
		SQL(", ").Text(short(f.member.Name, 255)).SQL(", {now}, {now}, ").Later("{now}", f.member.Lease).SQL(")")
	if f.cfg().Dialect == sqltext.MySQL {
		s.SQL(" ON DUPLICATE KEY UPDATE heard_at = VALUES(heard_at), expires_at = VALUES(expires_at)")
	} else {
		s.SQL(" ON CONFLICT (feed, member) DO UPDATE SET heard_at = excluded.heard_at, expires_at = excluded.expires_at")
	}
	_, err := s.Exec(ctx, tx)
	return err
}

// short cuts a text to a number of characters.
func short(text string, length int) string {
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length])
	}
	return text
}

// quota divides the shards evenly; the oldest members get one more each when there is a remainder. The quotas add up to all
// shards, so none stays free, and none is claimed by two.
func (f *feed) quota(ctx context.Context, tx *sql.Tx) (feeds.Share, error) {
	var share feeds.Share
	var paused, due sql.NullInt64
	var id sql.NullString
	s := f.cfg().stmt("SELECT (SELECT paused FROM {feeds} WHERE feed = ").Word(f.name).
		SQL("), (SELECT id FROM {feeds} WHERE feed = ").Word(f.name).SQL("), ")
	if err := f.anyDue(s).Row(ctx, tx).Scan(&paused, &id, &due); err != nil {
		return share, err
	}
	share.ID = id.String
	if !paused.Valid {
		return share, errRemoved
	}
	place := -1
	s = f.cfg().stmt("SELECT member FROM {members} WHERE feed = ").Word(f.name).SQL(" AND expires_at > {now} ORDER BY since, member")
	err := s.Each(ctx, tx, func(scan func(...any) error) error {
		var member string
		err := scan(&member)
		if member == f.id {
			place = share.Members
		}
		share.Members++
		return err
	})
	if err != nil {
		return share, err
	}
	if place < 0 {
		return share, errors.New("the member is not among the feed's")
	}
	share.Quota = f.t.shards / share.Members
	if place < f.t.shards%share.Members {
		share.Quota++
	}
	share.Deferred = due.Valid
	if share.Paused = paused.Int64 != 0; share.Paused {
		share.Quota = 0
	}
	return share, nil
}

const leaseColumns = `shard, token, CASE WHEN holder IS NULL THEN 1 ELSE 0 END,
	CASE WHEN holder IS NULL OR expires_at IS NULL OR expires_at <= {now} THEN 1 ELSE 0 END, crashes, `

// leases reads the feed's leases, or those of some shards, which it then locks unless others have.
func (f *feed) leases(ctx context.Context, tx *sql.Tx, lock []int) ([]lease, error) {
	d := f.cfg().Dialect
	age := d.Micros("{now}") + " - " + d.Micros("coalesce(sent_at, CASE WHEN holder IS NOT NULL THEN changed_at END)") + ", "
	s := f.cfg().stmt("SELECT ", leaseColumns, age, "CASE WHEN holder = ").Text(f.id).SQL(" THEN 1 ELSE 0 END FROM {leases} WHERE feed = ").Word(f.name)
	if lock != nil {
		s.SQL(" AND ").Numbers("shard", "smallint", lock)
	}
	if s.SQL(" ORDER BY shard"); lock != nil {
		s.SQL(" FOR UPDATE SKIP LOCKED")
	}
	var all []lease
	err := s.Each(ctx, tx, func(scan func(...any) error) error {
		var l lease
		err := scan(&l.shard, &l.token, &l.free, &l.over, &l.crashes, &l.unsure, &l.mine)
		all = append(all, l)
		return err
	})
	return all, err
}

// take returns the leases that the member goes on with, and those that it takes: free ones, up to its quota.
func (f *feed) take(ctx context.Context, tx *sql.Tx, quota int, owned map[int]*ownedShard) (kept, taken []lease, err error) {
	all, err := f.leases(ctx, tx, nil)
	if err != nil {
		return nil, nil, err
	}
	var late, others []int
	for _, l := range all {
		own := owned[l.shard]
		switch {
		case l.mine && (own == nil || own.token == l.token):
			if l.over {
				late = append(late, l.shard)
			} else {
				kept = append(kept, l)
			}
		case own != nil: // taken away meanwhile: the caller must learn it before it gets the shard again
		case l.over:
			others = append(others, l.shard)
		}
	}
	if len(late) == 0 && (len(others) == 0 || len(kept) >= quota) {
		return kept, nil, nil
	}
	room := max(quota-len(kept), 0)
	candidates := slices.Concat(late, others)
	locked, err := f.leases(ctx, tx, candidates)
	if err != nil {
		return nil, nil, err
	}
	var renewed, fresh, given []int
	for _, l := range locked {
		switch {
		case !l.over:
			if l.mine { // a settlement has renewed it
				kept = append(kept, l)
				room--
			}
		case l.mine && room > 0: // late, but taken by nobody: goes on where it was
			room--
			kept, renewed = append(kept, l), append(renewed, l.shard)
		case l.mine: // not in the share, so the caller forgets what it read: the fence must know
			given = append(given, l.shard)
		}
	}
	for _, l := range locked {
		if l.over && !l.mine && room > 0 {
			room--
			l.token++
			if l.crashes++; l.free {
				l.crashes = 0
			}
			taken, fresh = append(taken, l), append(fresh, l.shard)
		}
	}
	return kept, taken, errors.Join(f.renew(ctx, tx, renewed, nil), f.hold(ctx, tx, fresh), f.give(ctx, tx, given, nil))
}

// renew prolongs leases, whose marks say what was sent; without moves there are no marks.
func (f *feed) renew(ctx context.Context, tx *sql.Tx, shards []int, moves map[int]*move) error {
	return f.update(ctx, tx, shards, func(s *sqltext.Stmt) {
		sent(s, shards, moves).SQL("changed_at = {now}, expires_at = ").Later("{now}", f.member.Lease)
	})
}

// sent sets sent_at. It comes first: MySQL uses new values in what follows.
func sent(s *sqltext.Stmt, shards []int, moves map[int]*move) *sqltext.Stmt {
	const unknown = "CASE WHEN holder IS NULL THEN sent_at ELSE coalesce(sent_at, changed_at) END"
	s.SQL("sent_at = CASE WHEN 1 = 0 THEN NULL")
	for _, shard := range shards {
		m := moves[shard]
		if m == nil || m.stale {
			continue
		}
		ago(s.SQL(" WHEN shard = ").Number(int64(shard)).SQL(" THEN "), m.sent)
	}
	return s.SQL(" ELSE ", unknown, " END, ")
}

// ago adds a time of our own clock, by that of the database; NULL if it is zero.
func ago(s *sqltext.Stmt, t time.Time) *sqltext.Stmt {
	if t.IsZero() {
		return s.SQL("NULL")
	}
	return s.Later("{now}", -max(0, time.Since(t)))
}

// hold makes leases the member's.
func (f *feed) hold(ctx context.Context, tx *sql.Tx, shards []int) error {
	return f.update(ctx, tx, shards, func(s *sqltext.Stmt) {
		sent(s, nil, nil).SQL("token = token + 1, crashes = CASE WHEN holder IS NULL THEN 0 ELSE crashes + 1 END, holder = ").Text(f.id).
			SQL(", changed_at = {now}, expires_at = ").Later("{now}", f.member.Lease)
	})
}

// give releases leases, with marks as in renew.
func (f *feed) give(ctx context.Context, tx *sql.Tx, shards []int, moves map[int]*move) error {
	return f.update(ctx, tx, shards, func(s *sqltext.Stmt) {
		sent(s, shards, moves).SQL("token = token + 1, holder = NULL, expires_at = NULL, changed_at = {now}")
	})
}

// update changes leases that are locked.
func (f *feed) update(ctx context.Context, tx *sql.Tx, shards []int, set func(*sqltext.Stmt)) error {
	if len(shards) == 0 {
		return nil
	}
	s := f.cfg().stmt("UPDATE {leases}")
	if f.cfg().Dialect == sqltext.MySQL {
		s.SQL(" FORCE INDEX (PRIMARY)") // or it would look at the leases of others
	}
	set(s.SQL(" SET "))
	_, err := s.SQL(" WHERE feed = ").Word(f.name).SQL(" AND ").Numbers("shard", "smallint", shards).Exec(ctx, tx)
	return err
}
