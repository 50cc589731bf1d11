package admissions

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/examples/admissions/demo/crowd"
	"github.com/postrider/postrider/examples/admissions/demo/stage"
)

// TestJobs checks the jobs that one application leaves in the queue: each message has become one
// job, whose ID is derived from the message's. The queue rejects a second job with that ID, so a
// message that is sent again does not create another one.
func TestJobs(t *testing.T) {
	s := newStage(t, "asynq")
	people := crowd.New(s.Settings.Pages)
	people.Apply(t.Context(), "law", 1)
	if err := people.Wait(); err != nil {
		t.Fatal(err)
	}
	options, err := asynq.ParseRedisURI("redis" + strings.TrimPrefix(s.Queue, "asynq"))
	if err != nil {
		t.Fatal(err)
	}
	inspector, client := asynq.NewInspector(options), asynq.NewClient(options)
	defer inspector.Close()
	defer client.Close()
	application := people.Promises()[0].Application
	for _, want := range []struct{ message, job, id, payload string }{
		{"document_uploaded", "verify_document", "verify_", `{"applicationId":"` + application + `","applicationFileIds":["`},
		{"application_submitted", "create_payment", "payment_", `{"applicationId":"` + application + `"}`},
		{"payment_completed", "send_email", "email_", `{"applicationId":"` + application + `"}`},
	} {
		id := want.id + messageOf(t, s, application, want.message)
		var info *asynq.TaskInfo
		play(t, func(ctx context.Context) error {
			return stage.Until(ctx, func() (err error) { info, err = inspector.GetTaskInfo("default", id); return err })
		})
		if info.Type != s.Prefix+want.job || !strings.HasPrefix(string(info.Payload), want.payload) {
			t.Errorf("%s is the job %s with %s, want %s with %s", id, info.Type, info.Payload, s.Prefix+want.job, want.payload)
		}
		_, err := client.Enqueue(asynq.NewTask(info.Type, info.Payload), asynq.TaskID(id))
		if !errors.Is(err, asynq.ErrTaskIDConflict) {
			t.Errorf("a second job %s: %v", id, err)
		}
	}
}

// messageOf returns the ID of the message of a type about an application, or "" if there is none
// yet.
func messageOf(t *testing.T, s *stage.Stage, application, kind string) (id string) {
	t.Helper()
	db, err := pgxpool.New(t.Context(), s.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	play(t, func(ctx context.Context) error {
		return stage.Until(ctx, func() error {
			return db.QueryRow(ctx, "SELECT id::text FROM postrider.messages WHERE aggregate_id = $1 AND type = $2", application, kind).Scan(&id)
		})
	})
	return id
}
