package brokers_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// faults is the minimum number of faults in a test.
const faults = 10

// TestOrderUnderFailure delivers messages over a network that resets connections, drops
// confirmations and delays them. No message is lost, the first receipts of each key are in order,
// and nothing comes twice where the broker can be asked.
func TestOrderUnderFailure(t *testing.T) {
	each(t, func(t *testing.T, b server) {
		s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), b.create(t), 100)
		count := pick(10_000, 50_000)
		if b.forgets { // the broker is also slow
			count = 5000
		}
		s.enqueue(count)
		pub, proxy := b.flaky(t, s.name)
		w := &weather{Publisher: pub, proxy: proxy, every: s.committed.Load() / 25, soon: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { w.blow(ctx) })
		r, stop := s.carry(w)
		s.delivered(r, s.committed.Load(), 5*time.Minute)
		for more := 0; w.faults.Load() < faults && more < 50; more++ { // on a fast machine the first messages arrive between two faults
			s.enqueue(int(w.every) * 2)
			s.delivered(r, s.committed.Load(), time.Minute)
		}
		cancel()
		run.Wait()
		stop()
		t.Logf("%d faults, %d retries", w.faults.Load(), r.Stats().Retried)
		if n := w.faults.Load(); n < faults {
			t.Errorf("only %d faults have hit the relay", n)
		}
		v := s.hear(b.consumer(t, s.name), 2*time.Minute)
		s.expect(v, !b.unordered)
		if b.once && v.received != v.distinct {
			t.Errorf("%d repetitions", v.received-v.distinct)
		}
	})
}

// weather injects a network fault each time a number of messages has been confirmed, and also when
// there is no progress.
type weather struct {
	postrider.Publisher
	proxy  *flaky.Proxy
	every  int64
	soon   chan struct{}
	count  atomic.Int64
	faults atomic.Int64
}

func (w *weather) Publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := w.Publisher.Publish(ctx, msgs)
	confirmed := int64(len(msgs))
	for _, err := range errs {
		if err != nil {
			confirmed--
		}
	}
	if before := w.count.Add(confirmed) - confirmed; before/w.every != (before+confirmed)/w.every {
		select {
		case w.soon <- struct{}{}:
		default:
		}
	}
	return errs
}

func (w *weather) KeepsOrder() bool {
	keeper, ok := w.Publisher.(broker.OrderKeeper)
	return ok && keeper.KeepsOrder()
}

func (w *weather) NameOf(m *postrider.Message) string {
	if namer, ok := w.Publisher.(broker.Namer); ok {
		return namer.NameOf(m)
	}
	return ""
}

func (w *weather) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	return broker.Recall(ctx, w.Publisher, names, since, found)
}

// blow injects one fault after the other, and finally restores the network.
func (w *weather) blow(ctx context.Context) {
	defer w.proxy.Restore()
	random := rand.New(rand.NewPCG(1, 2))
	pause := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	for {
		select {
		case <-w.soon:
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return
		}
		w.faults.Add(1)
		switch random.IntN(4) {
		case 0:
			w.proxy.Reset()
		case 1:
			w.proxy.SwallowAnswers()
			pause(time.Duration(random.IntN(100)) * time.Millisecond)
			w.proxy.Restore()
		case 2:
			w.proxy.Delay(time.Duration(random.IntN(20)) * time.Millisecond)
			pause(time.Duration(random.IntN(300)) * time.Millisecond)
			w.proxy.Restore()
		case 3:
			w.proxy.Cut()
			pause(time.Duration(random.IntN(200)) * time.Millisecond)
			w.proxy.Restore()
		}
	}
}
