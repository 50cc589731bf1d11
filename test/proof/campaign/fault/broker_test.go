package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

var brokerChecks = map[string]func(s *scene){
	"kafka-kill":            func(s *scene) { s.serverKilled("kafka-kill") },
	"nats-kill":             func(s *scene) { s.serverKilled("nats-kill") },
	"nats-leader-kill":      func(s *scene) { s.serverKilled("nats-leader-kill") },
	"rabbitmq-kill":         func(s *scene) { s.serverKilled("rabbitmq-kill") },
	"redis-kill":            func(s *scene) { s.serverKilled("redis-kill") },
	"kafka-restart":         func(s *scene) { s.serverKilled("kafka-restart") },
	"pgbouncer-restart":     func(s *scene) { s.serverKilled("pgbouncer-restart") },
	"kafka-pause":           func(s *scene) { s.serverPaused("kafka-pause") },
	"nats-pause":            func(s *scene) { s.serverPaused("nats-pause") },
	"rabbitmq-pause":        func(s *scene) { s.serverPaused("rabbitmq-pause") },
	"redis-pause":           func(s *scene) { s.serverPaused("redis-pause") },
	"rabbitmq-memory-alarm": (*scene).memoryAlarm,
	"redis-readonly":        func(s *scene) { s.redisRefuses("redis-readonly", "READONLY") },
	"redis-oom":             func(s *scene) { s.redisRefuses("redis-oom", "OOM") },
	"redis-forbidden":       func(s *scene) { s.redisRefuses("redis-forbidden", "NOPERM") },
	"rabbitmq-forbidden":    (*scene).publishingForbidden,
	"rabbitmq-queue-full":   (*scene).queueFull,
	"nats-name-missing":     (*scene).subjectMissing,
	"oversized-key":         (*scene).keyOversized,
	"poison":                (*scene).isPoisoned,
}

func (s *scene) serverKilled(kind string) {
	s.Helper()
	r := s.begin(kind, "")
	if s.Server(r.Target).Running() {
		s.Errorf("%s runs", r.Target)
	}
	s.heal(r)
	if !s.Server(r.Target).Running() {
		s.Errorf("%s does not run again", r.Target)
	}
}

// serverPaused checks that all processes of a server are suspended.
func (s *scene) serverPaused(kind string) {
	s.Helper()
	r := s.begin(kind, "")
	all := s.Server(r.Target).PIDs()
	if len(all) == 0 {
		s.Fatalf("%s has no process", r.Target)
	}
	s.eventually(r.Target+" stands still", func() bool {
		return !slices.ContainsFunc(all, func(pid int) bool { return !stopped(pid) })
	})
	s.heal(r)
	s.eventually(r.Target+" goes on", func() bool { return !slices.ContainsFunc(all, stopped) })
}

// memoryAlarm checks that publishers are blocked, and unblocked afterwards.
func (s *scene) memoryAlarm() {
	conn, err := amqp.Dial(s.Broker(world.RabbitMQ))
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		s.Fatal(err)
	}
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 10))
	r := s.begin("rabbitmq-memory-alarm", "")
	// Only connections that publish are notified.
	if err := channel.Publish("", "nobody", false, false, amqp.Publishing{}); err != nil {
		s.Fatal(err)
	}
	next := func() bool {
		select {
		case b := <-blocked:
			return b.Active
		case <-time.After(30 * time.Second):
			s.Fatal("no word of an alarm")
			return false
		}
	}
	if !next() {
		s.Error("the first word is that there is no alarm")
	}
	s.heal(r)
	for next() {
	}
}

func (s *scene) redisRefuses(kind, word string) {
	s.Helper()
	write := func() error {
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
		defer cancel()
		return s.RedisDo(ctx, "XADD", "facts", "*", "name", "fact")
	}
	if err := write(); err != nil {
		s.Fatal(err)
	}
	r := s.begin(kind, "")
	if err := write(); err == nil || !strings.Contains(err.Error(), word) {
		s.Errorf("a write: %v", err)
	}
	s.heal(r)
	if err := write(); err != nil {
		s.Errorf("afterwards: %v", err)
	}
}

func (s *scene) isPoisoned() {
	written := ""
	s.OnPoison(func(_ context.Context, destination string, n int) error {
		written = fmt.Sprintf("%s %d messages", destination, n)
		return nil
	})
	r := s.begin("poison", "")
	s.heal(r)
	if said := r.Target + " " + r.Detail; said != written {
		s.Errorf("%s were said, %s were written", said, written)
	}
}

// queueFull checks that the queue rejects messages, and accepts them again afterwards.
func (s *scene) queueFull() {
	conn, err := amqp.Dial(s.Broker(world.RabbitMQ))
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		s.Fatal(err)
	}
	if _, err := channel.QueueDeclare("campaign", true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}); err != nil {
		s.Fatal(err)
	}
	if err := channel.Confirm(false); err != nil {
		s.Fatal(err)
	}
	accepted := func() bool {
		c, err := channel.PublishWithDeferredConfirm("", "campaign", true, false, amqp.Publishing{})
		if err != nil {
			s.Fatal(err)
		}
		return c.Wait()
	}
	r := s.begin("rabbitmq-queue-full", "")
	s.eventually("it rejects messages", func() bool { return !accepted() })
	s.heal(r)
	s.eventually("it takes messages", accepted)
}

// publishingForbidden checks that a new connection must not publish, and may afterwards.
func (s *scene) publishingForbidden() {
	publish := func() error {
		conn, err := amqp.Dial(s.Broker(world.RabbitMQ))
		if err != nil {
			s.Fatal(err)
		}
		defer conn.Close()
		channel, err := conn.Channel()
		if err != nil {
			s.Fatal(err)
		}
		if err := channel.Confirm(false); err != nil {
			s.Fatal(err)
		}
		closed := channel.NotifyClose(make(chan *amqp.Error, 1))
		c, err := channel.PublishWithDeferredConfirm("amq.fanout", "campaign", false, false, amqp.Publishing{})
		if err != nil {
			return err
		}
		if c.Wait() {
			return nil
		}
		return <-closed
	}
	if err := publish(); err != nil {
		s.Fatal(err)
	}
	r := s.begin("rabbitmq-forbidden", "")
	if err := publish(); err == nil || !strings.Contains(err.Error(), "ACCESS_REFUSED") {
		s.Errorf("publishing: %v", err)
	}
	s.heal(r)
	s.eventually("it is allowed", func() bool { return publish() == nil })
}

// subjectMissing checks that no stream has the subject, and that one has it afterwards.
func (s *scene) subjectMissing() {
	stream := func() error {
		_, err := s.NATSLeader(s.Context(), world.NATS)
		return err
	}
	if err := stream(); err != nil {
		s.Fatal(err)
	}
	r := s.begin("nats-name-missing", "")
	if err := stream(); !errors.Is(err, jetstream.ErrStreamNotFound) {
		s.Errorf("the stream of the subject: %v", err)
	}
	s.heal(r)
	s.eventually("a stream has the subject", func() bool { return stream() == nil })
}

func (s *scene) keyOversized() {
	written := ""
	s.OnOversize(func(_ context.Context, destination string) (bool, error) {
		written = destination
		return true, nil
	})
	r := s.begin("oversized-key", "")
	s.heal(r)
	if r.Target != written || r.Detail != "the database takes it" {
		s.Errorf("%s: %s; written for %s", r.Target, r.Detail, written)
	}
}
