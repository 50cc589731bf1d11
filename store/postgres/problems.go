package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

var (
	_ feeds.Reporter = (*feed)(nil)
	_ admin.Problems = (*Admin)(nil)
)

// Report implements [feeds.Reporter].
func (f *feed) Report(ctx context.Context, problems []feeds.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	var (
		names    []string
		failures []int64
		causes   []string
	)
	for _, p := range problems {
		names = append(names, storable(p.Name))
		failures = append(failures, p.Failures)
		causes = append(causes, clean(p.Cause))
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err := f.exec(ctx, "SELECT @schema@.report($1, $2, $3, $4)", f.name, names, failures, causes)
	if err != nil {
		return fmt.Errorf("postgres: report: %w", explain(err))
	}
	return nil
}

// Problems implements [admin.Problems].
func (d *Admin) Problems(ctx context.Context, feed string) ([]feeds.Problem, error) {
	rows, err := d.query(ctx, `SELECT name, cause, failures, since, last, over FROM @schema@.problems
		WHERE feed = $1 ORDER BY last DESC, name`, feed)
	if err != nil {
		return nil, fmt.Errorf("postgres: problems: %w", err)
	}
	problems, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (feeds.Problem, error) {
		var p feeds.Problem
		var over *time.Time
		err := row.Scan(&p.Name, &p.Cause, &p.Failures, &p.Since, &p.Last, &over)
		p.Since, p.Last, p.Over = p.Since.UTC(), p.Last.UTC(), value(over).UTC()
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: problems: %w", explain(err))
	}
	return problems, nil
}
