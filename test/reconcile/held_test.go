package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestHeld checks that a message that the broker has confirmed and then lost is sent again with its
// own ID.
func TestHeld(t *testing.T) {
	url := pgtest.Env(t, "POSTRIDER_TEST_NATS")
	pool := pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	s := newSchool(t, pool, pgtest.Schema(t, pool, postgres.Layout{}))
	ctx := t.Context()

	conn, err := client.Connect(url)
	s.check(err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	s.check(err)
	name := "reconciler-" + postrider.NewID().String()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Duplicates: 100 * time.Millisecond})
	s.check(err)
	defer js.DeleteStream(context.Background(), name) //nolint:errcheck // tidies up

	pub, err := nats.NewPublisher(nats.Config{URL: url})
	s.check(err)
	defer pub.Close()
	r, err := relay.New(s.db.Feeds(), pub, relay.Config{Logger: slog.New(slog.DiscardHandler)})
	s.check(err)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(running) }()
	defer func() { stop(); <-done }()

	var msgs []postrider.Message
	for i := range 20 {
		m := postrider.Event("t", postrider.Aggregate{Type: "a", ID: fmt.Sprint(i)}, i)
		m.Topic = name
		msgs = append(msgs, m)
	}
	s.check(s.Do(ctx, func(ctx context.Context, tx pgx.Tx) error { return s.db.Outbox().Enqueue(ctx, tx, msgs...) }))
	await := func(last uint64) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			info, err := stream.Info(ctx)
			s.check(err)
			if info.State.LastSeq >= last {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d messages arrived, want %d", info.State.LastSeq, last)
			}
		}
	}
	await(20)
	lost, err := stream.GetMsg(ctx, 7)
	s.check(err)
	s.check(stream.DeleteMsg(ctx, 7))

	log := s.db.SentLog("default", "reconciler")
	p, err := reconcile.New(s.db.Reconciliations(), s, nil, reconcile.Config{}, reconcile.Job[pgx.Tx]{
		Name: "held", Grace: 200 * time.Millisecond, Check: reconcile.Unheld(log, pub, nil)})
	s.check(err)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // until it is old enough
		run, err := p.RunNow(ctx, "held", reconcile.Options{})
		s.check(err)
		if run.Fixed == 1 {
			break
		}
		if run.Fixed > 1 || time.Now().After(deadline) {
			t.Fatalf("%+v", run)
		}
	}
	await(21)
	again, err := stream.GetMsg(ctx, 21)
	s.check(err)
	if want := lost.Header.Get(client.MsgIdHdr); want == "" || again.Header.Get(client.MsgIdHdr) != want {
		t.Errorf("message %q came, want %q", again.Header.Get(client.MsgIdHdr), want)
	}
	run, err := p.RunNow(ctx, "held", reconcile.Options{})
	if err != nil || run.Found != 0 {
		t.Errorf("afterwards: %+v, %v", run, err)
	}
}
