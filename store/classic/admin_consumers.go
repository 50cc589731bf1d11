package classic

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// asideOfConsumers is how far what a consumer has deferred is counted.
const asideOfConsumers = 5 * countAside

// gaugeConsumers returns the consumers. The newest IDs are those that were recorded last, or nearly.
func (d *Admin) gaugeConsumers(ctx context.Context, q querier) ([]admin.ConsumerStanding, error) {
	all := []admin.ConsumerStanding{}
	if d.inbox == nil {
		return all, nil
	}
	var numbers []int64
	var windows []time.Duration
	err := d.cfg.stmt("SELECT c.n, c.name, c.window_us, ", d.cfg.Dialect.micros("c.created_at"), ", ", d.cfg.Dialect.micros("h.at"), ", h.process ",
		"FROM {consumers} c LEFT JOIN {consumer_heard} h ON h.consumer = c.n ORDER BY c.name").
		each(ctx, q, func(scan func(...any) error) error {
			var n, window int64
			var c admin.ConsumerStanding
			var created, heard sql.NullInt64
			var process sql.NullString
			err := scan(&n, &c.Name, &window, &created, &heard, &process)
			c.Created, c.Heard, c.Process = moment(created), moment(heard), process.String
			all, numbers, windows = append(all, c), append(numbers, n), append(windows, time.Duration(window)*time.Microsecond)
			return err
		})
	for i := range all {
		if err != nil {
			break
		}
		var kept sql.NullInt64
		err = d.cfg.stmt("SELECT ", d.cfg.Dialect.micros("max(i.keep_until)"), " FROM (SELECT keep_until FROM {inbox} WHERE consumer = ").
			number(numbers[i]).sql(" ORDER BY id DESC LIMIT 10) i").row(ctx, q).Scan(&kept)
		if kept.Valid {
			all[i].Last = moment(kept).Add(-windows[i])
		}
		if err == nil {
			all[i].Aside, err = d.asideOfConsumer(ctx, q, numbers[i])
		}
	}
	return all, err
}

// asideOfConsumer counts what a consumer has deferred.
func (d *Admin) asideOfConsumer(ctx context.Context, q querier, number int64) (admin.AsideCount, error) {
	c, total := admin.AsideCount{}, 0
	err := d.cfg.stmt("SELECT x.status, count(*), count(DISTINCT x.blocks) FROM (SELECT status, CASE WHEN blocking = 1 AND key_hash <> '' THEN key_hash END",
		" AS blocks FROM {inbox_aside} WHERE consumer = ").number(number).sql(" LIMIT ").number(asideOfConsumers).sql(") x GROUP BY x.status").
		each(ctx, q, func(scan func(...any) error) error {
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
	c.Exact = total < asideOfConsumers
	return c, err
}

// findReceipts adds what consumers know of a message: that they have handled it, or deferred it.
func (d *Admin) findReceipts(ctx context.Context, q querier, j *admin.Journey) error {
	if d.inbox == nil {
		return nil
	}
	err := d.inbox.walk(ctx, q, admin.Filter{ID: j.Message.ID}, nil, false, func(l *feeds.Deferred) bool {
		if !j.InLog {
			j.Message = l.Message
		}
		j.Feeds = append(j.Feeds, legOf(l))
		return true
	})
	if err != nil {
		return err
	}
	return d.cfg.stmt("SELECT c.name, ", d.cfg.Dialect.micros("i.keep_until"), ` - c.window_us FROM {consumers} c
		JOIN {inbox} i ON i.consumer = c.n AND i.id = `).word(string(j.Message.ID[:])).sql(" ORDER BY c.name").
		each(ctx, q, func(scan func(...any) error) error {
			var name string
			var at sql.NullInt64
			err := scan(&name, &at)
			if !slices.ContainsFunc(j.Feeds, func(l admin.Leg) bool { return l.Feed == inbox.Feed(name) }) {
				j.Receipts = append(j.Receipts, admin.Receipt{Consumer: name, At: moment(at)})
			}
			return err
		})
}

func legOf(d *feeds.Deferred) admin.Leg {
	return admin.Leg{
		Feed: d.Feed, Status: d.Status, Blocking: d.Blocking, Attempts: d.Attempts, LastError: d.LastError, DeferredAt: d.DeferredAt,
		TriedAt: d.TriedAt, AvailableAt: d.AvailableAt,
	}
}

// newestOf returns the newest of what feeds and consumers have deferred, and whether nothing was left out.
func newestOf(a, b []feeds.Deferred, most int) ([]feeds.Deferred, bool) {
	all := append(a, b...)
	slices.SortStableFunc(all, func(a, b feeds.Deferred) int { return time.Time.Compare(b.DeferredAt, a.DeferredAt) })
	return all[:min(len(all), most)], len(all) <= most
}
