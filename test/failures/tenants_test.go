package failures_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

// TestTenants gives one tenant a backlog of a million messages on a broker that accepts 2,000 a
// second in total. A message that another tenant enqueues after them always arrives within 2 s.
// When the flood is over, all tenants are read together again, and no message was lost or
// duplicated.
func TestTenants(t *testing.T) {
	need.Alone(t, "measures how long messages take")
	s := newScene(t, newest(t), postgres.Layout{})
	flood, probes := 100_000, 40
	if need.IsLong() {
		flood, probes = 1_000_000, 100
	}
	s.exec(`INSERT INTO %s.messages (type, key, tenant_id, payload)
		SELECT 'flood', 'k' || i %% 1000, 'flood', convert_to(i::text, 'UTF8') FROM generate_series(1, $1::int) i`, flood)
	b := &slowBroker{each: 500 * time.Microsecond, arrived: make(map[postrider.ID]chan struct{}), last: make(map[string]int)}
	s.start(b, relay.Config{})
	s.eventually(30*time.Second, "the flood goes on", func() bool { return b.flood.Load() > 2000 })

	var longest time.Duration
	for i := range probes {
		m := postrider.Message{ID: postrider.NewID(), Type: "probe", Key: "probe " + strconv.Itoa(i), TenantID: "small " + strconv.Itoa(i%7)}
		arrived := b.expect(m.ID)
		begin := time.Now()
		s.enqueue(m)
		select {
		case <-arrived:
		case <-time.After(20 * time.Second):
			t.Fatalf("probe %d has not arrived, %d of the flood have", i, b.flood.Load())
		}
		took := time.Since(begin)
		if longest = max(longest, took); took > 2*time.Second {
			t.Errorf("probe %d took %v", i, took)
		}
	}
	left := flood - int(b.flood.Load())
	t.Logf("the longest way of %d probes took %v, with %d messages of the flood still waiting", probes, longest, left)
	if left < flood/2 {
		t.Errorf("only %d of the flood were waiting: the test proves nothing", left)
	}
	b.fast.Store(true)
	s.eventually(5*time.Minute, "the flood is over", func() bool { return int(b.flood.Load()) >= flood })
	s.eventually(time.Minute, "all is read together again", func() bool {
		var slices int
		if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+s.cfg.Schema+".slices").Scan(&slices); err != nil {
			t.Fatal(err)
		}
		return slices == 0
	})
	if n := int(b.flood.Load()); n != flood || b.disorder.Load() != 0 {
		t.Errorf("%d of %d messages of the flood arrived, %d out of order", n, flood, b.disorder.Load())
	}
}

// slowBroker accepts one message at a time, over all senders.
type slowBroker struct {
	each     time.Duration
	fast     atomic.Bool
	flood    atomic.Int64
	disorder atomic.Int64

	busy    sync.Mutex
	mu      sync.Mutex
	arrived map[postrider.ID]chan struct{}
	last    map[string]int
}

func (b *slowBroker) expect(id postrider.ID) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived[id] = make(chan struct{})
	return b.arrived[id]
}

func (b *slowBroker) Publish(ctx context.Context, msgs []postrider.Message) []error {
	if !b.fast.Load() {
		b.busy.Lock()
		time.Sleep(time.Duration(len(msgs)) * b.each)
		b.busy.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range msgs {
		m := &msgs[i]
		if c := b.arrived[m.ID]; c != nil {
			close(c)
			delete(b.arrived, m.ID)
		}
		if m.TenantID == "flood" {
			b.flood.Add(1)
			n, _ := strconv.Atoi(string(m.Payload))
			if n <= b.last[m.Key] {
				b.disorder.Add(1)
			}
			b.last[m.Key] = n
		}
	}
	return nil
}

func (b *slowBroker) Close() error { return nil }
