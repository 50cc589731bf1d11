package classic

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// inboxDeadLetters is the operator's side of an [DB.Inbox]: what consumers have deferred. It is safe for concurrent use.
type inboxDeadLetters struct {
	db  *sql.DB
	cfg Config
}

var _ admin.DeadLetters = (*inboxDeadLetters)(nil)

// deadLettersPage is how many messages are looked at in one statement.
const deadLettersPage = 500

// walk calls f for each message that matches, in order, until f returns false. Backward is newest first, whatever the feed.
func (l *inboxDeadLetters) walk(ctx context.Context, q querier, filter admin.Filter, after *feeds.Deferred, backward bool, f func(d *feeds.Deferred) bool) error {
	consumer := inbox.ConsumerOf(filter.Feed)
	if filter.Feed != "" && consumer == "" {
		return nil // a feed of relays
	}
	for {
		st := l.cfg.stmt("SELECT ", l.cfg.asideFields(!filter.ID.IsZero()), " FROM {inbox_aside} a JOIN {consumers} c ON c.n = a.consumer WHERE TRUE")
		if consumer != "" {
			st.sql(" AND c.name = ").word(consumer)
		}
		if !filter.ID.IsZero() {
			st.sql(" AND a.message_id = ").word(string(filter.ID[:]))
		}
		if filter.Key != "" {
			st.sql(" AND a.key_hash = ").word(keyHash(filter.Key))
		}
		if len(filter.Statuses) > 0 {
			texts := make([]string, len(filter.Statuses))
			for i, status := range filter.Statuses {
				texts[i] = string(status)
			}
			st.sql(" AND ").words("a.status", texts)
		}
		if !filter.Since.IsZero() {
			st.sql(" AND a.deferred_at >= ").time(filter.Since)
		}
		if !filter.Until.IsZero() {
			st.sql(" AND a.deferred_at < ").time(filter.Until)
		}
		if filter.Head {
			st.sql(` AND a.blocking = 1 AND NOT EXISTS (SELECT 1 FROM {inbox_aside} b
				WHERE b.consumer = a.consumer AND b.blocking = 1 AND b.key_hash = a.key_hash AND b.seq < a.seq)`)
		}
		switch {
		case backward && after != nil:
			st.sql(" AND a.seq < ").number(after.Seq)
		case after != nil:
			name := inbox.ConsumerOf(after.Feed)
			st.sql(" AND (c.name > ").word(name).sql(" OR c.name = ").word(name).sql(" AND a.seq > ").number(after.Seq).sql(")")
		}
		order := " ORDER BY c.name, a.seq LIMIT "
		if backward {
			order = " ORDER BY a.seq DESC LIMIT "
		}
		var page []feeds.Deferred
		err := st.sql(order).number(deadLettersPage).each(ctx, q, func(scan func(...any) error) error {
			d, err := scanAside(scan)
			page = append(page, d)
			return err
		})
		if err != nil {
			return explained(err)
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
func (l *inboxDeadLetters) List(ctx context.Context, filter admin.Filter, after *feeds.Deferred, limit int) ([]feeds.Deferred, error) {
	var page []feeds.Deferred
	if limit <= 0 {
		return nil, nil
	}
	err := l.walk(ctx, l.db, filter, after, false, func(d *feeds.Deferred) bool {
		page = append(page, *d)
		return len(page) < limit
	})
	if err != nil {
		return nil, fmt.Errorf("classic: letters: %w", err)
	}
	return page, nil
}

// Count implements [admin.DeadLetters].
func (l *inboxDeadLetters) Count(ctx context.Context, filter admin.Filter, limit int) (map[feeds.Status]int, error) {
	counts := make(map[feeds.Status]int)
	err := l.walk(ctx, l.db, filter, nil, false, func(d *feeds.Deferred) bool {
		if limit == 0 || counts[d.Status] < limit {
			counts[d.Status]++
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("classic: count letters: %w", err)
	}
	return counts, nil
}

// Groups implements [admin.DeadLetters].
func (l *inboxDeadLetters) Groups(ctx context.Context, filter admin.Filter, sample, limit int) (admin.Groups, error) {
	var newest []feeds.Deferred
	all := true
	err := l.walk(ctx, l.db, filter, nil, true, func(d *feeds.Deferred) bool {
		if len(newest) == sample {
			all = false
			return false
		}
		newest = append(newest, *d)
		return true
	})
	if err != nil {
		return admin.Groups{}, fmt.Errorf("classic: groups of letters: %w", err)
	}
	return admin.Groups{Sampled: len(newest), All: all, Groups: admin.GroupErrors(newest, limit)}, nil
}

// Blocked implements [admin.DeadLetters].
func (l *inboxDeadLetters) Blocked(ctx context.Context, feed string, limit int) ([]admin.BlockedKey, error) {
	consumer := inbox.ConsumerOf(feed)
	if feed != "" && consumer == "" {
		return nil, nil
	}
	st := l.cfg.stmt("SELECT ", l.cfg.Dialect.micros("k.since"), ", k.n - 1, ", l.cfg.asideFields(false),
		" FROM (SELECT min(x.seq) AS seq, min(x.deferred_at) AS since, count(*) AS n FROM {inbox_aside} x WHERE x.blocking = 1 ",
		"GROUP BY x.consumer, x.key_hash) k JOIN {inbox_aside} a ON a.seq = k.seq JOIN {consumers} c ON c.n = a.consumer WHERE TRUE")
	if consumer != "" {
		st.sql(" AND c.name = ").word(consumer)
	}
	var blocked []admin.BlockedKey
	err := st.sql(" ORDER BY k.since, c.name, a.seq LIMIT ").number(int64(limit)).each(ctx, l.db, func(scan func(...any) error) error {
		var since int64
		var b admin.BlockedKey
		var err error
		b.Head, err = scanAside(func(into ...any) error { return scan(append([]any{&since, &b.Waiting}, into...)...) })
		b.Feed, b.Key, b.Since, b.Head.Payload = b.Head.Feed, b.Head.OrderKey(), time.UnixMicro(since).UTC(), nil
		blocked = append(blocked, b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("classic: blocked keys: %w", explained(err))
	}
	return blocked, nil
}
