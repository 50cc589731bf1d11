package table

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Edit implements [admin.DeadLetters]. It changes the row in the table of messages.
func (d *Admin) Edit(ctx context.Context, by admin.By, feed string, id postrider.ID, edited postrider.Message) error {
	if d.inbox != nil && inbox.ConsumerOf(feed) != "" {
		return d.inbox.Edit(ctx, by, feed, id, edited)
	}
	f, err := d.named(ctx, d.db, feed)
	if err != nil {
		return d.failed("edit", err)
	}
	filter := admin.Filter{Feed: feed, ID: id, Statuses: []feeds.Status{feeds.StatusDead, feeds.StatusParked}}
	var found *deadLetter
	err = d.walk(ctx, d.db, f, filter, nil, false, func(l *deadLetter) bool {
		found = l
		return false
	})
	if err != nil {
		return d.failed("edit", err)
	}
	if found == nil {
		return fmt.Errorf("table: edit: feed %s has no dead or parked message %s: %w", feed, id, admin.ErrNoMessage)
	}
	err = d.change(ctx, f.name, []deadLetter{*found}, func(tx *sql.Tx) error {
		now, err := d.deadLettersOf(ctx, tx, f, []string{found.rowID})
		if err != nil {
			return err
		}
		l, ok := now[found.rowID]
		if !ok || !filter.Matches(&l.Deferred) {
			return fmt.Errorf("message %s is no longer dead or parked: %w", id, admin.ErrNoMessage)
		}
		return d.edit(ctx, tx, by, f, l, edited)
	})
	return d.failed("edit", err)
}

func (d *Admin) edit(ctx context.Context, tx *sql.Tx, by admin.By, f *served, l deadLetter, edited postrider.Message) error {
	m := l.Message
	m.Type, m.Topic, m.RoutingKey, m.ContentType = edited.Type, edited.Topic, edited.RoutingKey, edited.ContentType
	m.Headers, m.Payload = edited.Headers, edited.Payload
	if err := m.Validate(); err != nil {
		return err
	}
	if err := f.t.rewrite(ctx, tx, l.rowID, &l.Message, &m); err != nil {
		return err
	}
	if err := d.do(ctx, tx, f, admin.Retry, []deadLetter{l}); err != nil {
		return err
	}
	e := admin.Entry{Action: "edit", Feed: f.name, Count: 1, Target: map[string]any{"id": l.ID.String()}}
	e.Before = describe([]feeds.Deferred{l.Deferred})
	l.Message = m
	e.After = describe(afterwards(admin.Retry, []feeds.Deferred{l.Deferred}))
	return d.cfg.own().Note(ctx, tx, by, e)
}

// rewrite changes what a row says, as far as it has columns for it.
func (t *table) rewrite(ctx context.Context, tx *sql.Tx, rowID string, old, m *postrider.Message) error {
	c := &t.layout.Columns
	s := t.cfg.stmt("UPDATE ", t.byID, " SET ", t.quote(c.Payload), " = ")
	t.put(s, c.Payload, m.Payload)
	for _, x := range []struct{ what, column, old, now string }{
		{"type", c.Type, old.Type, m.Type},
		{"topic", c.Topic, old.Topic, m.Topic},
		{"routing key", c.RoutingKey, old.RoutingKey, m.RoutingKey},
		{"content type", c.ContentType, old.ContentType, m.ContentType},
	} {
		switch {
		case x.column == "" && x.now != x.old:
			return t.cannotHold(x.what)
		case x.column != "" && x.now == "" && t.columns[x.column].nullable:
			s.SQL(", ", t.quote(x.column), " = NULL")
		case x.column != "":
			s.SQL(", ", t.quote(x.column), " = ").Arg(x.now)
		}
	}
	switch {
	case c.Headers == "" && !maps.Equal(old.Headers, m.Headers):
		return t.cannotHold("headers")
	case c.Headers != "" && len(m.Headers) == 0 && t.columns[c.Headers].nullable:
		s.SQL(", ", t.quote(c.Headers), " = NULL")
	case c.Headers != "":
		headers := m.Headers
		if headers == nil {
			headers = map[string]string{}
		}
		text, err := json.Marshal(headers)
		if err != nil {
			return err
		}
		s.SQL(", ", t.quote(c.Headers), " = ")
		t.put(s, c.Headers, text)
	}
	if column := t.layout.State.UpdatedAt; column != "" {
		s.SQL(", ", t.quote(column), " = ", t.now())
	}
	_, err := s.SQL(" WHERE ").Add(idIn(t, []string{rowID})).Exec(ctx, tx)
	return err
}

// put adds bytes as a column takes them: as they are, or as text.
func (t *table) put(s *sqltext.Stmt, column string, value []byte) {
	switch t.columns[column].kind {
	case "bytea", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		s.Arg(append([]byte{}, value...))
	default:
		s.Arg(string(value))
	}
}

func (t *table) cannotHold(what string) error {
	return &admin.RefusedError{
		Reason: fmt.Sprintf("table %s has no column for the %s", t.layout.Table, what),
		Remedy: "leave that as it is",
	}
}
