package deadletters

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// DeadLetters is the operator's side of inboxes: what consumers have deferred. It is safe for concurrent use.
type DeadLetters struct {
	db  *sql.DB
	own sqltext.Tables
}

// New returns what operators ask for and do about what consumers have deferred.
func New(db *sql.DB, own sqltext.Tables) *DeadLetters { return &DeadLetters{db, own} }

var _ admin.DeadLetters = (*DeadLetters)(nil)

// deadLettersPage is how many messages are looked at in one statement.
const deadLettersPage = 500

// Walk calls f for each message that matches, in order, until f returns false. Backward is newest first, whatever the feed.
func (l *DeadLetters) Walk(ctx context.Context, q sqltext.Querier, filter admin.Filter, after *feeds.Deferred, backward bool, f func(d *feeds.Deferred) bool) error {
	consumer := inbox.ConsumerOf(filter.Feed)
	if filter.Feed != "" && consumer == "" {
		return nil // a feed of relays
	}
	for {
		st := l.own.Stmt("SELECT ", Fields(!filter.ID.IsZero()), " FROM {inbox_deferred} a JOIN {consumers} c ON c.n = a.consumer WHERE TRUE")
		if consumer != "" {
			st.SQL(" AND c.name = ").Word(consumer)
		}
		if !filter.ID.IsZero() {
			st.SQL(" AND a.message_id = ").Word(string(filter.ID[:]))
		}
		if filter.Key != "" {
			st.SQL(" AND a.key_hash = ").Word(KeyHash(filter.Key))
		}
		if len(filter.Statuses) > 0 {
			texts := make([]string, len(filter.Statuses))
			for i, status := range filter.Statuses {
				texts[i] = string(status)
			}
			st.SQL(" AND ").Words("a.status", texts)
		}
		if !filter.Since.IsZero() {
			st.SQL(" AND a.deferred_at >= ").Time(filter.Since)
		}
		if !filter.Until.IsZero() {
			st.SQL(" AND a.deferred_at < ").Time(filter.Until)
		}
		if filter.Head {
			st.SQL(` AND a.blocking = 1 AND NOT EXISTS (SELECT 1 FROM {inbox_deferred} b
				WHERE b.consumer = a.consumer AND b.blocking = 1 AND b.key_hash = a.key_hash AND b.seq < a.seq)`)
		}
		switch {
		case backward && after != nil:
			st.SQL(" AND a.seq < ").Number(after.Seq)
		case after != nil:
			name := inbox.ConsumerOf(after.Feed)
			st.SQL(" AND (c.name > ").Word(name).SQL(" OR c.name = ").Word(name).SQL(" AND a.seq > ").Number(after.Seq).SQL(")")
		}
		order := " ORDER BY c.name, a.seq LIMIT "
		if backward {
			order = " ORDER BY a.seq DESC LIMIT "
		}
		var page []feeds.Deferred
		err := st.SQL(order).Number(deadLettersPage).Each(ctx, q, func(scan func(...any) error) error {
			d, err := Scan(scan)
			page = append(page, d)
			return err
		})
		if err != nil {
			return sqltext.Explained(err)
		}
		for i := range page {
			if filter.Matches(&page[i]) && !f(&page[i]) {
				return nil
			}
		}
		if len(page) < deadLettersPage {
			return nil
		}
		after = &page[len(page)-1]
	}
}

// List implements [admin.DeadLetters]. The feeds come by name.
func (l *DeadLetters) List(ctx context.Context, filter admin.Filter, after *feeds.Deferred, limit int) ([]feeds.Deferred, error) {
	var page []feeds.Deferred
	if limit <= 0 {
		return nil, nil
	}
	err := l.Walk(ctx, l.db, filter, after, false, func(d *feeds.Deferred) bool {
		page = append(page, *d)
		return len(page) < limit
	})
	if err != nil {
		return nil, fmt.Errorf("table: dead letters: %w", err)
	}
	return page, nil
}

// Count implements [admin.DeadLetters].
func (l *DeadLetters) Count(ctx context.Context, filter admin.Filter, limit int) (map[feeds.Status]int, error) {
	counts := make(map[feeds.Status]int)
	err := l.Walk(ctx, l.db, filter, nil, false, func(d *feeds.Deferred) bool {
		if limit == 0 || counts[d.Status] < limit {
			counts[d.Status]++
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("table: count dead letters: %w", err)
	}
	return counts, nil
}

// Groups implements [admin.DeadLetters].
func (l *DeadLetters) Groups(ctx context.Context, filter admin.Filter, sample, limit int) (admin.Groups, error) {
	var newest []feeds.Deferred
	all := true
	err := l.Walk(ctx, l.db, filter, nil, true, func(d *feeds.Deferred) bool {
		if len(newest) == sample {
			all = false
			return false
		}
		newest = append(newest, *d)
		return true
	})
	if err != nil {
		return admin.Groups{}, fmt.Errorf("table: groups of dead letters: %w", err)
	}
	return admin.Groups{Sampled: len(newest), All: all, Groups: admin.GroupErrors(newest, limit)}, nil
}

// Blocked implements [admin.DeadLetters].
func (l *DeadLetters) Blocked(ctx context.Context, feed string, limit int) ([]admin.BlockedKey, error) {
	consumer := inbox.ConsumerOf(feed)
	if feed != "" && consumer == "" {
		return nil, nil
	}
	st := l.own.Stmt("SELECT ", sqltext.MySQL.Micros("k.since"), ", k.n - 1, ", Fields(false),
		" FROM (SELECT min(x.seq) AS seq, min(x.deferred_at) AS since, count(*) AS n FROM {inbox_deferred} x WHERE x.blocking = 1 ",
		"GROUP BY x.consumer, x.key_hash) k JOIN {inbox_deferred} a ON a.seq = k.seq JOIN {consumers} c ON c.n = a.consumer WHERE TRUE")
	if consumer != "" {
		st.SQL(" AND c.name = ").Word(consumer)
	}
	var blocked []admin.BlockedKey
	err := st.SQL(" ORDER BY k.since, c.name, a.seq LIMIT ").Number(int64(limit)).Each(ctx, l.db, func(scan func(...any) error) error {
		var since int64
		var b admin.BlockedKey
		var err error
		b.Head, err = Scan(func(into ...any) error { return scan(append([]any{&since, &b.Waiting}, into...)...) })
		b.Feed, b.Key, b.Since, b.Head.Payload = b.Head.Feed, b.Head.OrderKey(), time.UnixMicro(since).UTC(), nil
		blocked = append(blocked, b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("table: blocked keys: %w", sqltext.Explained(err))
	}
	return blocked, nil
}
