package reconcile

import (
	"testing"

	"github.com/postrider/postrider/broker/kafka"
	"github.com/postrider/postrider/test/docs/scratch"
)

// TestEnrollments checks that the page's reconciler finds an enrollment without a mail.
func TestEnrollments(t *testing.T) {
	pool := scratch.Pool(t, "CREATE TABLE enrollments AS SELECT id::bigint, now() - interval '1 hour' AS created_at FROM generate_series(1, 2) id",
		"CREATE TABLE mails AS SELECT 1::bigint AS enrollment")
	reconciler, err := Enrollments(pool)
	if err != nil {
		t.Fatal(err)
	}
	Run(t.Context(), reconciler)
	const sent = "SELECT count(*) FROM postrider.messages WHERE dedup_key = 'enrollment:2'"
	scratch.Await(t, pool, sent, 1)
	if n := scratch.Count(t, pool, "SELECT count(*) FROM postrider.messages"); n != 1 {
		t.Errorf("%d messages", n)
	}
}

// TestReady checks that the page's predefined jobs are accepted.
func TestReady(t *testing.T) {
	events, err := kafka.NewPublisher(kafka.Config{URL: "kafka://localhost:9092"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	_, db := scratch.Open(t)
	for _, job := range Ready(db, db, events) {
		if err := job.Validate(); err != nil {
			t.Error(err)
		}
	}
}
