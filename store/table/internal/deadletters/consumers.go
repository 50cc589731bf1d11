package deadletters

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// deferredOfConsumers is how far what a consumer has deferred is counted.
const deferredOfConsumers = 50_000

// Gauge returns the consumers. The newest IDs are those that were recorded last, or nearly.
func (l *DeadLetters) Gauge(ctx context.Context, q sqltext.Querier) ([]admin.ConsumerStanding, error) {
	all := []admin.ConsumerStanding{}
	var numbers []int64
	var windows []time.Duration
	err := l.own.Stmt("SELECT c.n, c.name, c.window_us, ", sqltext.MySQL.Micros("c.created_at"), ", ", sqltext.MySQL.Micros("h.at"), ", h.process ",
		"FROM {consumers} c LEFT JOIN {consumer_heard} h ON h.consumer = c.n ORDER BY c.name").
		Each(ctx, q, func(scan func(...any) error) error {
			var n, window int64
			var c admin.ConsumerStanding
			var created, heard sql.NullInt64
			var process sql.NullString
			err := scan(&n, &c.Name, &window, &created, &heard, &process)
			c.Created, c.Heard, c.Process = sqltext.Moment(created), sqltext.Moment(heard), process.String
			all, numbers, windows = append(all, c), append(numbers, n), append(windows, time.Duration(window)*time.Microsecond)
			return err
		})
	for i := range all {
		if err != nil {
			break
		}
		var kept sql.NullInt64
		err = l.own.Stmt("SELECT ", sqltext.MySQL.Micros("max(i.keep_until)"), " FROM (SELECT keep_until FROM {inbox} WHERE consumer = ").
			Number(numbers[i]).SQL(" ORDER BY id DESC LIMIT 10) i").Row(ctx, q).Scan(&kept)
		if kept.Valid {
			all[i].Last = sqltext.Moment(kept).Add(-windows[i])
		}
		if err == nil {
			all[i].Deferred, err = l.deferredOf(ctx, q, numbers[i])
		}
	}
	return all, err
}

// deferredOf counts what a consumer has deferred.
func (l *DeadLetters) deferredOf(ctx context.Context, q sqltext.Querier, number int64) (admin.DeferredCount, error) {
	c, total := admin.DeferredCount{}, 0
	err := l.own.Stmt("SELECT x.status, count(*), count(DISTINCT x.blocks) FROM (SELECT status, CASE WHEN blocking = 1 AND key_hash <> '' THEN key_hash END",
		" AS blocks FROM {inbox_deferred} WHERE consumer = ").Number(number).SQL(" LIMIT ").Number(deferredOfConsumers).SQL(") x GROUP BY x.status").
		Each(ctx, q, func(scan func(...any) error) error {
			var status feeds.Status
			var n, keys int
			err := scan(&status, &n, &keys)
			switch total += n; status {
			case feeds.StatusRetry:
				c.Retry = n
			case feeds.StatusWaiting:
				c.Waiting, keys = n, 0 // they wait behind another of their key
			case feeds.StatusDead:
				c.Dead = n
			case feeds.StatusParked:
				c.Parked = n
			default: // nobody defers what is none of these
			}
			c.Blocked += keys
			return err
		})
	c.Exact = total < deferredOfConsumers
	return c, err
}

// AddReceipts adds what consumers know of a message: that they have handled it, or deferred it.
func (l *DeadLetters) AddReceipts(ctx context.Context, q sqltext.Querier, j *admin.Journey) error {
	err := l.Walk(ctx, q, admin.Filter{ID: j.Message.ID}, nil, false, func(d *feeds.Deferred) bool {
		if !j.InLog {
			j.Message = d.Message
		}
		j.Feeds = append(j.Feeds, LegOf(d))
		return true
	})
	if err != nil {
		return err
	}
	return l.own.Stmt("SELECT c.name, ", sqltext.MySQL.Micros("i.keep_until"), ` - c.window_us FROM {consumers} c
		JOIN {inbox} i ON i.consumer = c.n AND i.id = `).Word(string(j.Message.ID[:])).SQL(" ORDER BY c.name").
		Each(ctx, q, func(scan func(...any) error) error {
			var name string
			var at sql.NullInt64
			err := scan(&name, &at)
			if !slices.ContainsFunc(j.Feeds, func(l admin.Leg) bool { return l.Feed == inbox.Feed(name) }) {
				j.Receipts = append(j.Receipts, admin.Receipt{Consumer: name, At: sqltext.Moment(at)})
			}
			return err
		})
}

// LegOf returns the part of a message's journey that ended with d.
func LegOf(d *feeds.Deferred) admin.Leg {
	return admin.Leg{
		Feed: d.Feed, Status: d.Status, Blocking: d.Blocking, Attempts: d.Attempts, LastError: d.LastError, DeferredAt: d.DeferredAt,
		TriedAt: d.TriedAt, AvailableAt: d.AvailableAt,
	}
}
