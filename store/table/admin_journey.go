package table

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/deadletters"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// journeyRecords is how many records of a message are shown.
const journeyRecords = 1000

// Journey implements [admin.Log].
func (d *Admin) Journey(ctx context.Context, id postrider.ID) (*admin.Journey, error) {
	j := &admin.Journey{Message: postrider.Message{ID: id}, Feeds: []admin.Leg{}, Receipts: []admin.Receipt{}, Records: []admin.Entry{}}
	err := d.look(ctx, func(tx *sql.Tx) error {
		names, err := d.feeds(ctx, tx)
		if err != nil {
			return err
		}
		for _, f := range names {
			if err := d.follow(ctx, tx, f, j); err != nil {
				return err
			}
		}
		if d.inbox != nil {
			if err := d.inbox.AddReceipts(ctx, tx, j); err != nil {
				return err
			}
		}
		if err := d.findRecords(ctx, tx, j); err != nil {
			return err
		}
		decide(j)
		return nil
	})
	if err == nil && !j.InLog && len(j.Feeds)+len(j.Receipts)+len(j.Records) == 0 {
		err = fmt.Errorf("message %s: %w", id, admin.ErrNoMessage)
	}
	if err != nil {
		return nil, d.failed("journey", err)
	}
	return j, nil
}

// follow adds what the table has, and how far a feed has come with it.
func (d *Admin) follow(ctx context.Context, q sqltext.Querier, f *served, j *admin.Journey) error {
	s, possible, err := d.newSearch(ctx, q, f, &admin.Filter{ID: j.Message.ID}, 0)
	if err != nil || !possible {
		return err
	}
	rows, err := s.rows(ctx, s.where, 1)
	if err != nil {
		return err
	}
	found, err := d.standings(ctx, q, f, rows)
	if err != nil || len(found) == 0 {
		return err
	}
	m := &found[0]
	j.Message, j.InLog, j.Seq, j.EnqueuedAt = m.Message, true, m.Seq, m.EnqueuedAt
	if f.name == "" || m.DeferredAt.IsZero() && !f.only.Matches(&m.Message) {
		return nil
	}
	leg := deadletters.LegOf(m)
	if m.Status == feeds.StatusPublished {
		leg.Settled = rows[0].settled
	}
	j.Feeds = append(j.Feeds, leg)
	return nil
}

// findRecords adds what operators did to the message alone. Nothing else remembers what was removed.
func (d *Admin) findRecords(ctx context.Context, q sqltext.Querier, j *admin.Journey) error {
	id := j.Message.ID.String()
	pattern := `%"id":"` + id + `"%`
	w := adminWhere{func(s *sqltext.Stmt) {
		s.SQL("(target LIKE ").Text(pattern).SQL(" OR before_change LIKE ").Text(pattern).SQL(")")
	}}
	records, err := d.entries(ctx, q, w, "n", journeyRecords)
	if err != nil {
		return err
	}
	for _, e := range records {
		if e.Target["id"] != id && e.Before["id"] != id {
			continue
		}
		j.Records = append(j.Records, e)
		if !j.InLog && j.Message.Type == "" && e.Before["id"] == id {
			remember(&j.Message, e.Before)
		}
	}
	return nil
}

// decide ends the way of a message that was discarded. A table that was adopted has but one word for that and for what is dead.
func decide(j *admin.Journey) {
	n := len(j.Records)
	if n == 0 || j.Records[n-1].Action != string(admin.Discard) {
		return
	}
	for i := range j.Feeds {
		if l := &j.Feeds[i]; l.Status == feeds.StatusDead && l.DeferredAt.IsZero() {
			l.Status = feeds.StatusPublished
		}
	}
}

// remember takes from a record what it keeps of a message. It does not say whether a payload is text or base64.
func remember(m *postrider.Message, kept map[string]any) {
	for name, to := range map[string]*string{
		"type": &m.Type, "topic": &m.Topic, "key": &m.Key, "routing_key": &m.RoutingKey, "content_type": &m.ContentType,
	} {
		*to, _ = kept[name].(string)
	}
}
