package brokertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// waitLimit is how long a test waits. It is long because only failing tests use it up.
const waitLimit = 60 * time.Second

// listener collects what a consumer receives.
type listener struct {
	mu      sync.Mutex
	msgs    []postrider.Message
	arrived chan struct{} // closed and replaced when a message arrives
	stop    func()
}

// listen starts to consume a name, until the test ends or stop is called.
func (h Harness) listen(t *testing.T, name, group string) *listener {
	t.Helper()
	return h.listenWith(t, name, group, func(context.Context, postrider.Message) error { return nil })
}

// listenWith collects the messages that handle accepts.
func (h Harness) listenWith(t *testing.T, name, group string, handle postrider.Handler) *listener {
	t.Helper()
	return collect(t, h.Consumer(t, name, group, 16), handle)
}

// collect collects the messages of a consumer that handle accepts.
func collect(t *testing.T, c postrider.Consumer, handle postrider.Handler) *listener {
	t.Helper()
	l := &listener{arrived: make(chan struct{})}
	l.stop = start(t, c, func(ctx context.Context, m postrider.Message) error {
		if err := handle(ctx, m); err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.msgs = append(l.msgs, m)
		close(l.arrived)
		l.arrived = make(chan struct{})
		return nil
	})
	return l
}

// start runs a consumer until the returned function is called or the test ends.
func start(t *testing.T, c postrider.Consumer, handle postrider.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Consume(ctx, handle) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Consume: %v", err)
			}
		case <-time.After(waitLimit):
			t.Error("Consume does not end")
		}
		if err := c.Close(); err != nil {
			t.Errorf("closing the consumer: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// received returns the messages received so far.
func (l *listener) received() ([]postrider.Message, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.msgs), l.arrived
}

// wait waits until the received messages contain every one of want, and returns them.
func (l *listener) wait(t *testing.T, want []postrider.Message) []postrider.Message {
	t.Helper()
	timeout := time.After(waitLimit)
	for {
		msgs, arrived := l.received()
		missing := missing(msgs, want)
		if len(missing) == 0 {
			return msgs
		}
		select {
		case <-arrived:
		case <-timeout:
			t.Fatalf("%d of %d messages have not arrived, the first is %s", len(missing), len(want), missing[0].ID)
		}
	}
}

func missing(have, want []postrider.Message) []postrider.Message {
	seen := make(map[postrider.ID]bool, len(have))
	for i := range have {
		seen[have[i].ID] = true
	}
	var missing []postrider.Message
	for i := range want {
		if !seen[want[i].ID] {
			missing = append(missing, want[i])
		}
	}
	return missing
}

// find returns the first message with the ID of m.
func find(t *testing.T, msgs []postrider.Message, m postrider.Message) postrider.Message {
	t.Helper()
	for i := range msgs {
		if msgs[i].ID == m.ID {
			return msgs[i]
		}
	}
	t.Fatalf("message %s is not there", m.ID)
	return postrider.Message{}
}
