package nats_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

// TestCannotRecall checks that a stream that may have removed messages, or that recognises
// repetitions for too short a time, is not taken for one that reports everything.
func TestCannotRecall(t *testing.T) {
	t.Parallel()
	server := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	p := publisher(t, nats.Config{URL: server})
	t.Cleanup(func() { _ = p.Close() })
	recall := func(subject string, since time.Time) error {
		ctx := broker.WithSender(t.Context(), broker.Sender{Name: "shop", Term: 1})
		return errors.Join(p.Recall(ctx, []string{subject}, since, func(string) {})...)
	}
	for reason, change := range map[string]func(*jetstream.StreamConfig){
		"":                 func(*jetstream.StreamConfig) {},
		"--dupe-window":    func(c *jetstream.StreamConfig) { c.Duplicates = 10 * time.Second },
		"read or replaced": func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"or replaced":      func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"other subjects": func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Subjects[0], Destination: "elsewhere." + c.Subjects[0]}
		},
		"has dropped": func(c *jetstream.StreamConfig) { c.MaxMsgs = 2 },
	} {
		subject := addStream(t, server, change)
		for n := range 3 {
			if errs := p.Publish(t.Context(), []postrider.Message{event(subject, "k", n)}); errs != nil {
				t.Fatal(errors.Join(errs...))
			}
		}
		err := recall(subject, time.Now())
		if reason == "" && err != nil || reason != "" && (!errors.Is(err, broker.ErrCannotRecall) || !strings.Contains(err.Error(), reason)) {
			t.Errorf("want %q, got %v", reason, err)
		}
		if err := recall(subject, time.Now().Add(time.Hour)); reason == "has dropped" && err != nil {
			t.Errorf("messages were dropped an hour before: %v", err)
		}
	}
}

// TestRecallWithoutStream: a subject that no stream has at the moment may come back to the one that
// has stored its messages.
func TestRecallWithoutStream(t *testing.T) {
	t.Parallel()
	server := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	var config jetstream.StreamConfig
	subject := addStream(t, server, func(c *jetstream.StreamConfig) { config = *c })
	p := publisher(t, nats.Config{URL: server})
	t.Cleanup(func() { _ = p.Close() })
	began := time.Now()
	if errs := p.Publish(t.Context(), []postrider.Message{event(subject, "k", 1)}); errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	recall := func() (stored int, err error) {
		ctx := broker.WithSender(t.Context(), broker.Sender{Name: "shop", Term: 1})
		errs := p.Recall(ctx, []string{subject}, began, func(string) { stored++ })
		return stored, errors.Join(errs...)
	}
	move := func(to string) {
		js := admin(t, server)
		config.Subjects = []string{to}
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	move(subject + ".elsewhere")
	if _, err := recall(); errors.Is(err, broker.ErrCannotRecall) || postrider.ScopeOf(err) != postrider.ScopeName {
		t.Errorf("without a stream: %v", err)
	}
	move(subject)
	if stored, err := recall(); err != nil || stored != 1 {
		t.Errorf("with the stream again: %d messages, %v", stored, err)
	}
}

// TestRecallOfDeleted: a stream of which messages were deleted can be recalled only if those are
// older than what is asked for.
func TestRecallOfDeleted(t *testing.T) {
	t.Parallel()
	server := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	p := publisher(t, nats.Config{URL: server})
	t.Cleanup(func() { _ = p.Close() })
	js := admin(t, server)
	for deleted := range uint64(6) { // 0 is none
		subject := addStream(t, server, func(*jetstream.StreamConfig) {})
		send := func(count int) {
			for n := range count {
				if errs := p.Publish(t.Context(), []postrider.Message{event(subject, "k", n)}); errs != nil {
					t.Fatal(errors.Join(errs...))
				}
			}
		}
		send(3)
		time.Sleep(300 * time.Millisecond) // the stream's time has to differ from that of what follows
		later := time.Now()
		send(2)
		name, err := js.StreamNameBySubject(t.Context(), subject)
		if err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(t.Context(), name)
		if err == nil && deleted > 0 {
			err = s.DeleteMsg(t.Context(), deleted)
		}
		if err != nil {
			t.Fatal(err)
		}
		const skew = time.Minute // a recall goes further back by this
		for _, one := range []struct {
			since time.Time
			from  uint64 // a deleted message from this number on may be too young
		}{
			{later, 1},
			{later.Add(skew), 3}, // as nothing is left that dates the third
			{later.Add(time.Hour), 6},
		} {
			ctx := broker.WithSender(t.Context(), broker.Sender{Name: "shop", Term: 1})
			err := errors.Join(p.Recall(ctx, []string{subject}, one.since, func(string) {})...)
			if want := deleted >= one.from; errors.Is(err, broker.ErrCannotRecall) != want || !want && err != nil {
				t.Errorf("message %d of 5 deleted, recalled from %d: %v", deleted, one.from, err)
			}
		}
	}
}
