package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/postgres"
)

// admission is the saga from a submitted application to a paid one. It ends with a seat and a
// payment, or with neither:
//
//	application   nothing to do              undone by: decline it
//	seat          take one of the programme  undone by: give it back
//	payment       ask the provider for one   undone by: cancel it
//	paid          wait for the webhook
type admission struct {
	saga    *saga.Saga[pgx.Tx, admissionData]
	outbox  *postgres.Outbox
	paydesk paydeskClient
}

// admissionData is the shared data of the steps.
type admissionData struct {
	Application string
	Programme   string
	Cents       int
	Seat        bool
}

// patience outlasts an outage of the provider: it should recover before an applicant is turned
// away.
var patience = retry.Policy{Attempts: 1000, First: time.Second, Most: 30 * time.Second}

func newAdmission(db *postgres.DB, set settings) (*admission, error) {
	a := &admission{outbox: db.Outbox(), paydesk: paydeskClient{url: set.paydeskURL, secret: set.paymentSecret}}
	var err error
	a.saga, err = saga.New(db.Sagas(), "admission",
		saga.Step("application", a.open, a.decline),
		saga.Step("seat", a.takeSeat, a.giveSeatBack),
		saga.Step("payment", a.createPayment, a.cancelPayment).Timeout(10*time.Second).Retry(patience).UndoFailed(),
		saga.Wait("paid", a.complete, nil).Within(7*24*time.Hour))
	return a, err
}

// start is the job create_payment. A programme without a fee is a mistake that no retry corrects:
// the job becomes a dead letter, and is retried after the fee is set.
func (a *admission) start(ctx context.Context, tx pgx.Tx, m about) error {
	data := admissionData{Application: m.ApplicationID}
	var cents *int
	err := tx.QueryRow(ctx, `
		SELECT a.programme, f.cents FROM admissions.applications a LEFT JOIN admissions.fees f USING (programme)
		WHERE a.id = $1`, m.ApplicationID).Scan(&data.Programme, &cents)
	if err != nil {
		return err
	}
	if cents == nil {
		return postrider.Permanent(fmt.Errorf("no fee is set for programme %s", data.Programme))
	}
	data.Cents = *cents
	err = a.saga.Start(ctx, tx, m.ApplicationID, data)
	if errors.Is(err, saga.ErrExists) {
		return nil // the message is older than the inbox window
	}
	return err
}

// open has nothing to do. The step exists for its compensation, which runs last because the step
// comes first.
func (a *admission) open(context.Context, pgx.Tx, *admissionData) error { return nil }

func (a *admission) decline(ctx context.Context, tx pgx.Tx, data *admissionData) error {
	reason := "The payment was declined or did not arrive in time."
	if !data.Seat {
		reason = "There is no seat left in this programme."
	}
	_, err := tx.Exec(ctx, "UPDATE admissions.applications SET declined_at = now(), declined_for = $2 WHERE id = $1",
		data.Application, reason)
	return err
}

func (a *admission) takeSeat(ctx context.Context, tx pgx.Tx, data *admissionData) error {
	tag, err := tx.Exec(ctx, "UPDATE admissions.programmes SET taken = taken + 1 WHERE id = $1 AND taken < seats", data.Programme)
	if err == nil && tag.RowsAffected() == 0 {
		return postrider.Permanent(errors.New("no seat is left"))
	}
	data.Seat = true
	return err
}

func (a *admission) giveSeatBack(ctx context.Context, tx pgx.Tx, data *admissionData) error {
	_, err := tx.Exec(ctx, "UPDATE admissions.programmes SET taken = taken - 1 WHERE id = $1", data.Programme)
	return err
}

// createPayment asks the provider for a payment. If the answer is lost, the next attempt gets the
// same payment by the key.
func (a *admission) createPayment(ctx context.Context, tx pgx.Tx, data *admissionData) error {
	payment, err := a.paydesk.create(ctx, saga.Key(ctx), data.Application, data.Cents)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE admissions.applications SET payment_id = $2, payment_at = now() WHERE id = $1",
		data.Application, payment)
	return err
}

// cancelPayment also runs if createPayment failed, because the provider may have created the
// payment nevertheless. So it passes the application's ID and not the payment's, which may have
// been lost with the answer.
func (a *admission) cancelPayment(ctx context.Context, _ pgx.Tx, data *admissionData) error {
	return a.paydesk.cancel(ctx, data.Application)
}

// complete handles the provider's webhook. It records the payment and enqueues the message about it
// in one transaction.
func (a *admission) complete(ctx context.Context, tx pgx.Tx, data *admissionData, news paymentNews) error {
	if news.Type != paymentSucceeded {
		return postrider.Permanent(errors.New(news.Type)) // starts the compensation
	}
	_, err := tx.Exec(ctx, "UPDATE admissions.applications SET paid_at = now() WHERE id = $1", data.Application)
	if err != nil {
		return err
	}
	return a.outbox.Enqueue(ctx, tx,
		postrider.UniqueEvent(paymentCompleted, postrider.Aggregate{Type: "application", ID: data.Application}, about{ApplicationID: data.Application}))
}
