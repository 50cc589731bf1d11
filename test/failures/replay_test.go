package failures_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
)

// TestDeadLetters creates a million dead letters. Every way to list them answers quickly; a replay
// of all keeps to its rate, can be interrupted and resumed, and sends each once.
func TestDeadLetters(t *testing.T) {
	need.Alone(t, "measures how long commands take")
	s := newScene(t, newest(t), postgres.Layout{})
	dead, rate, atRate := 40_000, 2000, 5*time.Second
	if need.IsLong() {
		dead, rate, atRate = 1_000_000, 2000, 30*time.Second
	}
	if err := s.admin.AddFeed(t.Context(), ann, "default", true); err != nil {
		t.Fatal(err)
	}
	s.exec(`INSERT INTO %[1]s.deferred (feed, seq, shard, status, blocking, attempts, available_at, last_error, order_key, priority, id, type,
		  key, topic, tenant_id, schema_version, created_at, occurred_at, payload)
		SELECT 'default', i, %[1]s.shard_of('k' || i, 8), 'dead', false, 5, 'infinity', 'the broker says: error ' || i %% 1000 || ' of message ' || i,
		  'k' || i, 0, gen_random_uuid(), 'type.' || i %% 50, 'k' || i, 'topic-' || i %% 20, 'tenant-' || i %% 1000, 1,
		  clock_timestamp() - (1000000 - i) * interval '1 ms', clock_timestamp(), '{}'
		FROM generate_series(1, $1::int) i`, dead)
	s.exec("ANALYZE %s.deferred")

	some, err := s.admin.List(t.Context(), admin.Filter{}, nil, 500)
	if err != nil {
		t.Fatal(err)
	}
	m := some[400]
	for name, f := range map[string]admin.Filter{
		"all": {}, "feed": {Feed: "default"}, "no such feed": {Feed: "none"}, "id": {ID: m.ID}, "type": {Type: m.Type}, "no such type": {Type: "x"},
		"topic": {Topic: m.Topic}, "key": {Key: m.Key}, "tenant": {Tenant: m.TenantID}, "tenant and type": {Tenant: m.TenantID, Type: m.Type},
		"parked": {Statuses: []feeds.Status{feeds.StatusParked}}, "since": {Since: m.EnqueuedAt}, "until": {Until: m.EnqueuedAt},
		"the last second": {Since: time.Now().Add(-time.Second)}, "nothing since": {Since: time.Now().Add(time.Hour)},
		"a common error": {Error: "broker says"}, "a rare error": {Error: "error 77"}, "one error": {Error: "message 4711"}, "no such error": {Error: "kafka"},
		"error and type": {Error: "error 77", Type: "type.27"}, "heads": {Head: true},
	} {
		f.Statuses = append(f.Statuses, feeds.StatusDead)[:max(len(f.Statuses), 1)]
		begin := time.Now()
		list, err := s.admin.List(t.Context(), f, nil, 50)
		took := time.Since(begin)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%-16s %3d in %v", name, len(list), took.Round(100*time.Microsecond))
		if took > 200*time.Millisecond {
			t.Errorf("%s took %v", name, took)
		}
	}

	b := &counter{seen: make(map[postrider.ID]int)}
	s.start(b, relay.Config{})
	job, err := s.admin.StartReplay(t.Context(), ann, admin.Replay{Dead: true, Rate: rate})
	if err != nil || job.Total != dead {
		t.Fatalf("%+v, %v", job, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), atRate)
	begin := time.Now()
	if _, err := s.admin.RunReplay(ctx, job.ID, func(admin.Job) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the run ended with %v", err)
	}
	cancel()
	took := time.Since(begin).Seconds()
	s.eventually(5*time.Second, "what was handed over has arrived", func() bool {
		job, err = s.admin.Job(t.Context(), job.ID)
		return err == nil && job.Delivered == job.Sent
	})
	got := float64(job.Sent) / took
	t.Logf("%d messages in %.1f s: %.0f/s, want %d/s", job.Sent, took, got, rate)
	if got < 0.95*float64(rate) || got > 1.05*float64(rate) {
		t.Errorf("the rate was %.0f/s, want %d/s", got, rate)
	}

	s.exec("UPDATE %s.jobs SET rate = 0 WHERE id = $1", job.ID)
	begin = time.Now()
	left := job.Total - job.Sent
	if job, err = s.admin.RunReplay(t.Context(), job.ID, func(admin.Job) {}); err != nil || job.State != "done" || job.Sent != dead {
		t.Errorf("%+v, %v", job, err)
	}
	s.eventually(5*time.Minute, "all have arrived", func() bool { return b.count() == dead })
	t.Logf("without a limit: %.0f/s", float64(left)/time.Since(begin).Seconds())
	s.eventually(10*time.Second, "the job knows", func() bool {
		job, err = s.admin.Job(t.Context(), job.ID)
		return err == nil && job.Delivered == dead && job.Failed == 0
	})
	for id, n := range b.seen {
		if n != 1 {
			t.Fatalf("%s was sent %d times", id, n)
		}
	}
}

// TestReplayOfTheLog sends delivered messages again, by filter and in order, and rejects a replay
// of messages that inboxes have already forgotten.
func TestReplayOfTheLog(t *testing.T) {
	s := newScene(t, newest(t), postgres.Layout{})
	w := &witness{sent: make(map[string][]time.Time), got: make(map[string][]int), refusedKeys: make(map[string]bool), quiet: true}
	b := &counter{seen: make(map[postrider.ID]int), next: w}
	s.start(b, relay.Config{Canary: 50 * time.Millisecond})
	var msgs []postrider.Message
	for i := range 500 {
		m := w.next(50+i%5, i)
		m.Type = []string{"even", "odd"}[i%2]
		msgs = append(msgs, m)
	}
	s.enqueue(msgs...)
	s.eventually(10*time.Second, "all have arrived", func() bool { return b.count() == 500 && s.pending() == 0 })
	job, err := s.admin.StartReplay(t.Context(), ann, admin.Replay{Filter: admin.Filter{Feed: "default", Type: "odd"}})
	if err != nil || job.Total != 250 {
		t.Fatalf("%+v, %v", job, err)
	}
	clear(w.got)
	if _, err := s.admin.RunReplay(t.Context(), job.ID, func(admin.Job) {}); err != nil {
		t.Fatal(err)
	}
	s.eventually(10*time.Second, "the odd ones have arrived again", func() bool {
		job, err = s.admin.Job(t.Context(), job.ID)
		return err == nil && job.Delivered == 250
	})
	w.check(t, 50)
	b.mu.Lock()
	for _, m := range msgs {
		if want := map[string]int{"even": 1, "odd": 2}[m.Type]; b.seen[m.ID] != want {
			t.Errorf("a message of type %s was sent %d times", m.Type, b.seen[m.ID])
		}
	}
	b.mu.Unlock()

	old := admin.Replay{Filter: admin.Filter{Feed: "default"}, DedupWindow: time.Nanosecond}
	if _, err := s.admin.StartReplay(t.Context(), ann, old); !errors.Is(err, admin.ErrRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
	old.Force = true
	if job, err = s.admin.StartReplay(t.Context(), ann, old); err != nil || job.Total != 500 { // and no canary
		t.Errorf("%+v, %v", job, err)
	}
}

// TestRewind rewinds a feed by 200,000 messages while another one continues undisturbed.
func TestRewind(t *testing.T) {
	s := newScene(t, newest(t), postgres.Layout{})
	n := 50_000
	if need.IsLong() {
		n = 200_000
	}
	a, b := &counter{seen: make(map[postrider.ID]int)}, &counter{seen: make(map[postrider.ID]int)}
	s.exec("SELECT %[1]s.add_feed('test', '', 'a', true), %[1]s.add_feed('test', '', 'b', true)")
	s.start(a, relay.Config{Feed: "a"})
	s.start(b, relay.Config{Feed: "b"})
	begin := time.Now()
	s.exec("INSERT INTO %s.messages (type, key) SELECT 'x', 'k' || i %% 1000 FROM generate_series(1, $1::int) i", n)
	s.eventually(2*time.Minute, "both have all", func() bool { return a.count() == n && b.count() == n && s.pending() == 0 })

	var probes sync.WaitGroup
	over := make(chan struct{})
	var longest time.Duration
	sent := 0
	probes.Go(func() {
		for {
			m := postrider.Message{ID: postrider.NewID(), Type: "probe", Key: "probe"}
			at := time.Now()
			s.enqueue(m)
			sent++
			for b.times(m.ID) == 0 {
				time.Sleep(time.Millisecond)
			}
			longest = max(longest, time.Since(at))
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	again, err := s.admin.Rewind(t.Context(), ann, "a", admin.Point{Time: begin.Add(-time.Minute)})
	if err != nil || again < n {
		t.Errorf("rewound by %d, %v, want %d", again, err, n)
	}
	s.eventually(2*time.Minute, "the feed has sent all again", func() bool { return a.total() >= 2*n })
	close(over)
	probes.Wait()
	t.Logf("rewound by %d; meanwhile the longest way of %d messages of the other feed took %v", again, sent, longest)
	if longest > time.Second {
		t.Errorf("the other feed was held up for %v", longest)
	}
	for id, times := range b.seen {
		if times != 1 {
			t.Fatalf("the other feed has sent %s %d times", id, times)
		}
	}
}

// pending returns how many messages the feeds have not settled.
func (s *scene) pending() (n int) {
	s.t.Helper()
	listed, err := s.admin.ListFeeds(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range listed {
		n += f.Pending
	}
	return n
}

// counter counts arriving messages.
type counter struct {
	mu   sync.Mutex
	seen map[postrider.ID]int
	all  int
	next postrider.Publisher // optional
}

func (c *counter) Publish(ctx context.Context, msgs []postrider.Message) []error {
	c.mu.Lock()
	for i := range msgs {
		c.seen[msgs[i].ID]++
	}
	c.all += len(msgs)
	c.mu.Unlock()
	if c.next != nil {
		return c.next.Publish(ctx, msgs)
	}
	return nil
}

func (c *counter) Close() error { return nil }

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

func (c *counter) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

func (c *counter) times(id postrider.ID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[id]
}
