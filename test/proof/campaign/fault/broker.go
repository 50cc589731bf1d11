package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// longEnough is the longest duration of faults whose cause the product must name: about a third of
// them then last for more than the 12 s from which the oracle judges that.
const longEnough = 18 * time.Second

func brokerKinds() []Kind {
	kinds := []Kind{
		{
			Name: "nats-leader-kill", Doc: "the server that leads the stream is killed", Weight: 4, Destination: world.NATS, Claims: []string{world.NATS},
			Shortest: time.Second, Longest: 8 * time.Second, Takes: 3 * time.Second, Begin: killLeader,
		},
		{
			Name: "kafka-restart", Doc: "Kafka is stopped cleanly and started again", Weight: 2, Destination: world.Kafka, Claims: []string{world.Kafka},
			Shortest: 0, Longest: 2 * time.Second, Takes: 10 * time.Second, Begin: restartServer(world.Kafka, world.Kafka),
		},
		{
			Name: "pgbouncer-restart", Doc: "PgBouncer is killed and started again", Weight: 4, Claims: []string{world.PgBouncer},
			Shortest: 0, Longest: 3 * time.Second, Takes: time.Second, Begin: killServer([]string{world.PgBouncer}, touchesDatabase),
		},
		{
			Name: "rabbitmq-memory-alarm", Doc: "RabbitMQ has no memory left, and lets publishers wait", Weight: 4, Destination: world.RabbitMQ,
			Claims: []string{world.RabbitMQ}, Shortest: 2 * time.Second, Longest: 10 * time.Second, Takes: 5 * time.Second, Begin: memoryAlarm,
		},
		{
			Name: "redis-readonly", Doc: "Redis has become a replica, and refuses writes", Weight: 3, Destination: world.Redis,
			Claims: []string{world.Redis}, Shortest: 2 * time.Second, Longest: longEnough,
			Begin: redisState([]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}),
		},
		{
			Name: "redis-oom", Doc: "Redis has no memory left, and refuses writes", Weight: 3, Destination: world.Redis,
			Claims: []string{world.Redis}, Shortest: 2 * time.Second, Longest: longEnough,
			Begin: redisState([]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}),
		},
		{
			Name: "redis-forbidden", Doc: "the right to append to streams is revoked at Redis, and given back", Weight: 3, Destination: world.Redis,
			Claims: []string{world.Redis}, Shortest: 3 * time.Second, Longest: longEnough,
			Begin: redisState([]any{"ACL", "SETUSER", "default", "-xadd"}, []any{"ACL", "SETUSER", "default", "+xadd"}),
		},
		{
			Name: "rabbitmq-forbidden", Doc: "the right to publish is revoked at RabbitMQ, and given back", Weight: 3, Destination: world.RabbitMQ,
			Claims: []string{world.RabbitMQ}, Shortest: 3 * time.Second, Longest: longEnough, Takes: 6 * time.Second, Begin: forbidPublishing,
		},
		{
			Name: "rabbitmq-queue-full", Doc: "the consumers' queue is full and rejects messages", Weight: 4, Destination: world.RabbitMQ,
			Claims: []string{world.RabbitMQ}, Shortest: 3 * time.Second, Longest: longEnough, Takes: 5 * time.Second, Begin: fillQueue,
		},
		{
			Name: "nats-name-missing", Doc: "no stream has the subject for a while", Weight: 4, Destination: world.NATS,
			Claims: []string{world.NATS}, Shortest: 3 * time.Second, Longest: longEnough, Begin: loseSubject,
		},
		{
			Name: "oversized-key", Doc: "somebody writes a message in SQL whose key is longer than the limit", Weight: 2, Shortest: time.Second,
			Longest: 3 * time.Second, Begin: oversizedKey,
		},
		{
			Name: "poison", Doc: "messages come that their destination has to refuse", Weight: 6, Shortest: time.Second, Longest: 3 * time.Second,
			Begin: poison,
		},
	}
	for _, b := range []struct {
		destination string
		servers     []string
		starts      time.Duration
	}{
		{world.Kafka, []string{world.Kafka}, 8 * time.Second},
		{world.NATS, []string{"nats1", "nats2", "nats3"}, 2 * time.Second},
		{world.RabbitMQ, []string{world.RabbitMQ}, 8 * time.Second},
		{world.Redis, []string{world.Redis}, time.Second},
	} {
		touches := []string{b.destination}
		kinds = append(kinds, Kind{
			Name: b.destination + "-kill", Doc: "a server of " + b.destination + " is killed and started again", Weight: 4, Destination: b.destination,
			Claims: touches, Shortest: time.Second, Longest: longEnough, Takes: b.starts, Begin: killServer(b.servers, touches),
		}, Kind{
			Name: b.destination + "-pause", Doc: "a server of " + b.destination + " does nothing for a while", Weight: 4, Destination: b.destination,
			// What was sent meanwhile stays in its buffers and is accepted later.
			Zombie: true,
			Claims: touches, Shortest: 2 * time.Second, Longest: 12 * time.Second, Begin: pauseServer(b.servers, touches),
		})
	}
	return kinds
}

func killServer(names, touches []string) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		name, err := pick(random, names)
		if err != nil {
			return nil, err
		}
		s := w.Server(name)
		if err := s.Kill(ctx); err != nil {
			return nil, err
		}
		r := &Running{Target: name, Touches: touches, Heal: s.Start}
		if len(names) == 1 && slices.Contains(w.Destinations(), name) {
			r.Refuses = name
		}
		return r, nil
	}
}

func pauseServer(names, touches []string) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(_ context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		name, err := pick(random, names)
		if err != nil {
			return nil, err
		}
		s := w.Server(name)
		if err := s.Pause(); err != nil {
			return nil, err
		}
		return &Running{Target: name, Touches: touches, Heal: func(context.Context) error { return s.Resume() }}, nil
	}
}

func restartServer(name string, touches ...string) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
		s := w.Server(name)
		if err := s.Stop(ctx); err != nil {
			return nil, err
		}
		return &Running{Target: name, Touches: touches, Heal: s.Start}, nil
	}
}

func killLeader(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	leader, err := w.NATSLeader(ctx, world.NATS)
	if err != nil {
		return nil, err
	}
	s := w.Server(leader)
	if err := s.Kill(ctx); err != nil {
		return nil, err
	}
	return &Running{Target: leader, Touches: []string{world.NATS}, Heal: s.Start}, nil
}

func memoryAlarm(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	if err := w.RabbitMQCtl(ctx, "set_vm_memory_high_watermark", "0.00001"); err != nil {
		return nil, err
	}
	return &Running{Target: world.RabbitMQ, Touches: []string{world.RabbitMQ}, Heal: func(ctx context.Context) error {
		return w.RabbitMQCtl(ctx, "set_vm_memory_high_watermark", "0.4")
	}}, nil
}

func redisState(bad, good []any) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
		if err := w.RedisDo(ctx, bad...); err != nil {
			return nil, err
		}
		return &Running{Target: world.Redis, Touches: []string{world.Redis}, Refuses: world.Redis, Heal: func(ctx context.Context) error {
			return w.RedisDo(ctx, good...)
		}}, nil
	}
}

// fillQueue fills one of the two queues that receive every message: a message that one queue
// rejects counts as rejected.
func fillQueue(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	full := `{"max-length": 1, "overflow": "reject-publish"}`
	if err := w.RabbitMQCtl(ctx, "set_policy", "--apply-to", "queues", "full", "^campaign$", full); err != nil {
		return nil, err
	}
	return &Running{Target: world.RabbitMQ, Touches: []string{world.RabbitMQ}, Refuses: world.RabbitMQ, Heal: func(ctx context.Context) error {
		return w.RabbitMQCtl(ctx, "clear_policy", "full")
	}}, nil
}

// forbidPublishing revokes the right to publish. Channels remember what they were allowed, so all
// connections are closed.
func forbidPublishing(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	allow := func(ctx context.Context, write string) error {
		return w.RabbitMQCtl(ctx, "set_permissions", "guest", ".*", write, ".*")
	}
	if err := allow(ctx, "^$"); err != nil {
		return nil, err
	}
	if err := w.RabbitMQCtl(ctx, "close_all_connections", "rights were revoked"); err != nil {
		return nil, errors.Join(err, allow(ctx, ".*"))
	}
	return &Running{
		Target: world.RabbitMQ, Touches: []string{world.RabbitMQ, record.Consumer}, Refuses: world.RabbitMQ,
		Heal: func(ctx context.Context) error { return allow(ctx, ".*") },
	}, nil
}

func loseSubject(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	const elsewhere = "campaign.elsewhere"
	if err := w.MoveSubject(ctx, world.NATS, elsewhere); err != nil {
		return nil, err
	}
	return &Running{Target: world.NATS, Touches: []string{world.NATS}, Refuses: world.NATS, Heal: func(ctx context.Context) error {
		return w.MoveSubject(ctx, elsewhere, world.NATS)
	}}, nil
}

// oversizedKey touches nothing, whether the database rejects the message or relays must handle it.
func oversizedKey(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	destination, err := pick(random, w.Destinations())
	if err != nil {
		return nil, err
	}
	taken, err := w.Oversize(ctx, destination)
	if err != nil {
		return nil, err
	}
	detail := "the database refuses it"
	if taken {
		detail = "the database takes it"
	}
	return &Running{Target: destination, Detail: detail, Heal: nothing}, nil
}

// poison touches nothing: other messages must not be affected.
func poison(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	destination, err := pick(random, w.Destinations())
	if err != nil {
		return nil, err
	}
	n := 1 + random.IntN(20)
	if err := w.Poison(ctx, destination, n); err != nil {
		return nil, err
	}
	return &Running{Target: destination, Detail: fmt.Sprintf("%d messages", n), Heal: nothing}, nil
}
