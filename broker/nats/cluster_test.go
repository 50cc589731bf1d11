package nats_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

// TestLeaderDies kills the leader of a stream with three replicas under load: confirmed messages
// must be stored, keys in order, and no message refused while there is no leader.
func TestLeaderDies(t *testing.T) {
	need.Own(t, "nats-cluster")
	url := need.Env(t, "POSTRIDER_TEST_NATS_CLUSTER", "nats-cluster")
	for _, atomically := range []bool{false, true} {
		t.Run(fmt.Sprintf("atomic=%v", atomically), func(t *testing.T) {
			name := create(t, url, atomically, 3)
			p := publisher(t, nats.Config{URL: url, Stream: streamOf(name, atomically), Atomic: atomically, AckTimeout: time.Second})
			t.Cleanup(func() { p.Close() })
			load := startLoad(t, p, name)

			load.waitFor(t, 500)
			leader := leaderOf(t, url, name)
			node := "nats-cluster" + strings.TrimPrefix(leader, "n")
			t.Cleanup(func() { need.Services(t, "start", node) })
			need.Services(t, "kill", node)
			load.waitFor(t, 500)
			need.Services(t, "start", node)
			load.waitFor(t, 500)
			confirmed := load.stop()

			expectAll(t, consumer(t, nats.Config{URL: url, Name: name, Group: "check", InFlight: 500}), confirmed)
		})
	}
}

func leaderOf(t *testing.T, url, subject string) string {
	t.Helper()
	js := admin(t, url)
	stream, err := js.StreamNameBySubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Cluster.Leader
}

// electionTimeout is how long a cluster may take to elect a leader on a busy machine.
const electionTimeout = time.Minute

// load publishes as a relay does: it resends unconfirmed messages, and sends nothing of their keys
// before.
type load struct {
	cancel context.CancelFunc
	run    sync.WaitGroup

	mu        sync.Mutex
	confirmed map[string]int // the last confirmed payload by key
	total     int
	progress  chan struct{}
}

func startLoad(t *testing.T, p *nats.Publisher, name string) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel, confirmed: make(map[string]int), progress: make(chan struct{}, 1)}
	perKey := 1
	if p.KeepsOrder() {
		perKey = 10
	}
	for sender := range 4 {
		l.run.Go(func() { l.publish(ctx, t, p, name, sender, perKey) })
	}
	t.Cleanup(func() { l.stop() })
	return l
}

func (l *load) publish(ctx context.Context, t *testing.T, p *nats.Publisher, name string, sender, perKey int) {
	for next := 0; ctx.Err() == nil; next += perKey {
		var msgs []postrider.Message
		for n := range perKey {
			for key := range 10 {
				m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: fmt.Sprintf("%d-%d", sender, key)}, []byte(strconv.Itoa(next+n)))
				m.Topic = name
				msgs = append(msgs, m)
			}
		}
		for end := time.Now().Add(electionTimeout); len(msgs) > 0; {
			if time.Now().After(end) {
				t.Errorf("%d messages are not confirmed after %s", len(msgs), electionTimeout)
				return
			}
			errs := p.Publish(context.Background(), msgs)
			var failed []postrider.Message
			for i := range msgs {
				switch {
				case len(errs) == 0 || errs[i] == nil:
					l.confirm(msgs[i])
				case postrider.ClassOf(errs[i]) == postrider.ClassPermanent:
					t.Errorf("refused: %v", errs[i])
					return
				default:
					failed = append(failed, msgs[i])
				}
			}
			msgs = failed
		}
	}
}

func (l *load) confirm(m postrider.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.confirmed[m.OrderKey()]++
	select {
	case l.progress <- struct{}{}:
	default:
	}
}

// waitFor waits until n more messages are confirmed.
func (l *load) waitFor(t *testing.T, n int) {
	t.Helper()
	timeout := time.After(electionTimeout)
	l.mu.Lock()
	want := l.total + n
	l.mu.Unlock()
	for {
		l.mu.Lock()
		reached := l.total >= want
		l.mu.Unlock()
		if reached {
			return
		}
		select {
		case <-l.progress:
		case <-timeout:
			t.Fatal("publishing does not go on")
		}
	}
}

// stop returns how many messages of each key were confirmed.
func (l *load) stop() map[string]int {
	l.cancel()
	l.run.Wait()
	return l.confirmed
}

// expectAll receives until each key has reached its number, and checks that first receipts are in
// order and without gaps.
func expectAll(t *testing.T, c *nats.Consumer, want map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	next := make(map[string]int)
	left, again := len(want), 0
	err := c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
		n, err := strconv.Atoi(string(m.Payload))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		key := m.OrderKey()
		switch {
		case n > next[key]:
			t.Errorf("key %s: message %d came before %d", key, n, next[key])
		case n < next[key]:
			again++
			return nil
		}
		if next[key] = n + 1; next[key] == want[key] {
			if left--; left == 0 {
				cancel()
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if left > 0 {
		t.Errorf("%d of %d keys are not complete: got %v, want %v", left, len(want), next, want)
	}
	t.Logf("%d messages came again", again)
}
