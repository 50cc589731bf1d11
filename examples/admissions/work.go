package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/postgres"
)

// worker does one kind of job. Its inbox runs each job once, retries it when it fails, and keeps it
// as a dead letter when the attempts are used up.
type worker struct {
	name  string // on the command line
	takes string // the type of messages
	inbox *inbox.Inbox[pgx.Tx]
	also  func(context.Context) error // runs concurrently, if not nil
}

// retries is the retry policy of jobs. After the third attempt a job is a dead letter, so that an
// operator can correct the cause and retry it. The last delay is only used with more attempts.
// Errors that no retry corrects are marked with postrider.Permanent.
var retries = retry.Policy{Attempts: 3, Pauses: []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}}

// work runs the named workers, or all of them, until ctx ends.
func work(ctx context.Context, db *postgres.DB, set settings, names []string) error {
	q, err := openQueue(set)
	if err != nil {
		return err
	}
	workers, err := newWorkers(db, set)
	if err != nil {
		return err
	}
	if workers, err = choose(workers, names); err != nil {
		return err
	}
	parts, err := q.deliver(workers)
	if err != nil {
		return err
	}
	for _, w := range workers {
		if w.also != nil {
			parts = append(parts, w.also)
		}
		slog.Info("worker starts", "worker", w.name, "job", w.inbox.Name())
	}
	return together(ctx, parts...)
}

func newWorkers(db *postgres.DB, set settings) ([]worker, error) {
	store := db.Inbox()
	admission, err := newAdmission(db, set)
	if err != nil {
		return nil, err
	}
	steps, err := saga.NewRunner(saga.Config{}, admission.saga)
	if err != nil {
		return nil, err
	}
	post, err := newPost(set)
	if err != nil {
		return nil, err
	}
	open := func(name, job, takes string) worker {
		in, wrong := inbox.New(store, job, inbox.Config{Retry: retries})
		err = errors.Join(err, wrong)
		return worker{name: name, takes: takes, inbox: in}
	}
	verify := open("verify", jobVerify, documentUploaded)
	payment := open("payment", jobPayment, applicationSubmitted)
	mail := open("mail", jobMail, paymentCompleted)
	if err != nil {
		return nil, err
	}
	inbox.On(verify.inbox, verify.takes, verifyDocuments)
	inbox.On(payment.inbox, payment.takes, admission.start)
	inbox.On(mail.inbox, mail.takes, post.confirm)
	payment.also = steps.Run
	return []worker{verify, payment, mail}, nil
}

// choose returns the named workers, or all if there are no names.
func choose(all []worker, names []string) (chosen []worker, err error) {
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(w worker) bool { return w.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no worker %q; %s", name, usage)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
