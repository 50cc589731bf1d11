package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// application is the applicant's view of an application.
type application struct {
	ID          string
	Name        string
	Email       string
	Programme   string // its title
	SubmittedAt *time.Time
	VerifiedAt  *time.Time // when the last document was verified
	PaymentAt   *time.Time // when the payment was created and could be paid
	PaidAt      *time.Time
	MailedAt    *time.Time
	DeclinedAt  *time.Time
	DeclinedFor string
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func loadApplication(ctx context.Context, db querier, id string) (a application, err error) {
	err = db.QueryRow(ctx, `
		SELECT a.id::text, a.name, a.email, p.title, a.submitted_at,
		       (SELECT max(verified_at) FROM admissions.documents WHERE application = a.id HAVING bool_and(verified_at IS NOT NULL)),
		       a.payment_at, a.paid_at, a.mailed_at, a.declined_at, coalesce(a.declined_for, '')
		FROM admissions.applications a JOIN admissions.programmes p ON p.id = a.programme
		WHERE a.id = $1`, id).
		Scan(&a.ID, &a.Name, &a.Email, &a.Programme, &a.SubmittedAt, &a.VerifiedAt, &a.PaymentAt, &a.PaidAt, &a.MailedAt,
			&a.DeclinedAt, &a.DeclinedFor)
	return a, err
}

// step is a step of a complete application.
type step struct {
	Name  string     `json:"name"`
	Label string     `json:"-"`
	Done  bool       `json:"done"`
	At    *time.Time `json:"at"`
}

func (a application) Steps() []step {
	steps := []step{
		{Name: "submitted", Label: "Application received", At: a.SubmittedAt},
		{Name: "documents_verified", Label: "Documents verified", At: a.VerifiedAt},
		{Name: "payment_created", Label: "Payment prepared", At: a.PaymentAt},
		{Name: "confirmation_sent", Label: "Paid and confirmed by e-mail", At: a.MailedAt},
	}
	for i := range steps {
		steps[i].Done = steps[i].At != nil
	}
	return steps
}

// Progress returns the progress in percent. The workers do not wait for each other, so a step may
// be done before an earlier one; it counts only when the earlier one is done too. Thus a percentage
// always means the same status, and no applicant is asked to pay for documents that may be refused.
func (a application) Progress() (percent int) {
	for _, s := range a.Steps() {
		if !s.Done {
			break
		}
		percent += 25
	}
	return percent
}

// Status returns the status of the application as one word.
func (a application) Status() string {
	switch progress := a.Progress(); {
	case a.DeclinedAt != nil:
		return "declined"
	case progress == 100:
		return "completed"
	case progress == 75 && a.PaidAt != nil:
		return "paid"
	case progress == 75:
		return "awaiting_payment"
	case progress == 50:
		return "verified"
	default:
		return "submitted"
	}
}

// StatusURL returns the URL of the status page.
func (a application) StatusURL() string { return statusPath(a.ID) }

// PayURL returns the URL where the applicant pays.
func (a application) PayURL() string { return payPath(a.ID) }

// Payable reports whether the applicant must pay now.
func (a application) Payable() bool { return a.Status() == "awaiting_payment" }

// Final reports whether the status is final.
func (a application) Final() bool { return a.Status() == "completed" || a.Status() == "declined" }
