package verdict

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Read collects the facts about all applicants whose address ends with a suffix.
func Read(ctx context.Context, db *pgxpool.Pool, maildir, suffix string) (Facts, error) {
	var f Facts
	var errs [3]error
	f.Applications, errs[0] = rows[Application](ctx, db, `
		SELECT a.id::text, a.email, CASE
			WHEN a.declined_at IS NOT NULL THEN 'declined'
			WHEN EXISTS (SELECT FROM admissions.documents d WHERE d.application = a.id AND d.verified_at IS NULL) THEN 'not verified'
			WHEN a.payment_at IS NULL THEN 'without a payment'
			WHEN a.paid_at IS NULL THEN 'not paid'
			WHEN a.mailed_at IS NULL THEN 'not mailed'
			ELSE 'completed' END AS status
		FROM admissions.applications a WHERE starts_with(reverse(a.email), reverse($1)) ORDER BY a.email`, suffix)
	f.Payments, errs[1] = rows[Payment](ctx, db, `
		SELECT p.id::text, p.application::text, p.status
		FROM paydesk.payments p JOIN admissions.applications a ON a.id::text = p.application::text
		WHERE starts_with(reverse(a.email), reverse($1)) ORDER BY p.id`, suffix)
	f.Mails, errs[2] = Maildir(maildir, suffix)
	return f, errors.Join(errs[:]...)
}

// Counts is the progress of the applicants of a run.
type Counts struct {
	Applications, Verified, Payments, Paid, Mailed int
}

// Count reads the progress from the database, quickly enough to do so while people apply.
func Count(ctx context.Context, db *pgxpool.Pool, suffix string) (Counts, error) {
	got, err := rows[Counts](ctx, db, `
		SELECT count(*) AS applications,
			count(*) FILTER (WHERE NOT EXISTS (
				SELECT FROM admissions.documents d WHERE d.application = a.id AND d.verified_at IS NULL)) AS verified,
			count(payment_at) AS payments, count(paid_at) AS paid, count(mailed_at) AS mailed
		FROM admissions.applications a WHERE starts_with(reverse(a.email), reverse($1))`, suffix)
	if err != nil {
		return Counts{}, err
	}
	return got[0], nil
}

// Seats compares the seats that are taken with the applications that hold one.
func Seats(ctx context.Context, db *pgxpool.Pool) error {
	type programme struct {
		ID           string
		Taken, Holds int
	}
	wrong, err := rows[programme](ctx, db, `
		SELECT p.id, p.taken, count(a.id) AS holds
		FROM admissions.programmes p
		LEFT JOIN admissions.applications a ON a.programme = p.id AND a.payment_at IS NOT NULL AND a.declined_at IS NULL
		GROUP BY p.id, p.taken HAVING p.taken <> count(a.id)`)
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range wrong {
		errs = append(errs, fmt.Errorf("%s: %d seats are taken, by %d applications", w.ID, w.Taken, w.Holds))
	}
	return errors.Join(errs...)
}

func rows[T any](ctx context.Context, db *pgxpool.Pool, sql string, args ...any) ([]T, error) {
	found, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByName[T])
}
