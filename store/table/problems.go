package table

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

var (
	_ feeds.Reporter = (*feed)(nil)
	_ admin.Problems = (*Admin)(nil)
)

// maxProblems is how many names of a feed are kept.
const maxProblems = 1000

// Report implements [feeds.Reporter].
func (f *feed) Report(ctx context.Context, problems []feeds.Problem) error {
	var failing []feeds.Problem
	var over []string
	places := make(map[string]int) // by name, because a statement must not name a row twice
	for _, p := range problems {
		i, ok := places[p.Name]
		switch {
		case p.Failures == 0:
			over = append(over, nameHash(p.Name))
		case ok:
			failing[i].Failures += p.Failures
		default:
			places[p.Name] = len(failing)
			failing = append(failing, p)
		}
	}
	for part := range slices.Chunk(failing, chunk) {
		if err := f.addProblems(ctx, part); err != nil {
			return fmt.Errorf("table: report: %w", err)
		}
	}
	for part := range slices.Chunk(over, chunk) {
		s := f.cfg().stmt("UPDATE {problems} SET over_at = {now} WHERE over_at IS NULL AND feed = ").Word(f.name)
		if _, err := s.SQL(" AND ").Words("name_hash", part).Exec(ctx, f.store.db); err != nil {
			return fmt.Errorf("table: report: %w", err)
		}
	}
	if len(failing) == 0 {
		return nil
	}
	if err := f.forgetProblems(ctx); err != nil {
		return fmt.Errorf("table: report: %w", err)
	}
	return nil
}

// addProblems adds failures to what is known. A problem that was over begins again: MySQL sets columns one after the other, so
// over_at comes last.
func (f *feed) addProblems(ctx context.Context, problems []feeds.Problem) error {
	as := ""
	if f.cfg().Dialect == sqltext.PostgreSQL {
		as = " AS p"
	}
	s := f.cfg().stmt("INSERT INTO {problems}", as, " (feed, name_hash, name, since, last_at, failures, cause) VALUES ")
	for i, p := range problems {
		if i > 0 {
			s.SQL(", ")
		}
		s.SQL("(").Word(f.name).SQL(", ").Word(nameHash(p.Name)).SQL(", ").Text(storable(p.Name)).SQL(", {now}, {now}, ").Number(p.Failures).
			SQL(", ").Add(causeText(p.Cause)).SQL(")")
	}
	if f.cfg().Dialect == sqltext.MySQL {
		s.SQL(` ON DUPLICATE KEY UPDATE since = CASE WHEN over_at IS NULL THEN since ELSE VALUES(since) END, last_at = VALUES(last_at),
			failures = CASE WHEN over_at IS NULL THEN failures ELSE 0 END + VALUES(failures), cause = VALUES(cause), over_at = NULL`)
	} else {
		s.SQL(` ON CONFLICT (feed, name_hash) DO UPDATE SET since = CASE WHEN p.over_at IS NULL THEN p.since ELSE excluded.since END,
			last_at = excluded.last_at, failures = CASE WHEN p.over_at IS NULL THEN p.failures ELSE 0 END + excluded.failures,
			cause = excluded.cause, over_at = NULL`)
	}
	_, err := s.Exec(ctx, f.store.db)
	return err
}

// forgetProblems leaves as many names as are kept: those that are over go first, then those that were not seen for longest.
func (f *feed) forgetProblems(ctx context.Context) error {
	var old []string
	s := f.cfg().stmt("SELECT name_hash FROM {problems} WHERE feed = ").Word(f.name)
	s.SQL(" ORDER BY CASE WHEN over_at IS NULL THEN 0 ELSE 1 END, last_at DESC LIMIT ", strconv.Itoa(chunk*10), " OFFSET ", strconv.Itoa(maxProblems))
	err := s.Each(ctx, f.store.db, func(scan func(...any) error) error {
		var hash string
		err := scan(&hash)
		old = append(old, hash)
		return err
	})
	for part := range slices.Chunk(old, chunk) {
		s := f.cfg().stmt("DELETE FROM {problems} WHERE feed = ").Word(f.name).SQL(" AND ").Words("name_hash", part)
		if err == nil {
			_, err = s.Exec(ctx, f.store.db)
		}
	}
	return err
}

// Problems implements [admin.Problems].
func (d *Admin) Problems(ctx context.Context, feed string) ([]feeds.Problem, error) {
	micros := d.cfg.Dialect.Micros
	var problems []feeds.Problem
	s := d.cfg.stmt("SELECT name, cause, failures, ", micros("since"), ", ", micros("last_at"), ", ", micros("over_at"),
		" FROM {problems} WHERE feed = ").Word(feed).SQL(" ORDER BY last_at DESC, name_hash")
	err := s.Each(ctx, d.db, func(scan func(...any) error) error {
		var p feeds.Problem
		var cause sql.NullString
		var since, last, over sql.NullInt64
		err := scan(&p.Name, &cause, &p.Failures, &since, &last, &over)
		p.Cause, p.Since, p.Last, p.Over = cause.String, sqltext.Moment(since), sqltext.Moment(last), sqltext.Moment(over)
		problems = append(problems, p)
		return err
	})
	return problems, d.failed("problems", err)
}
