package rabbitmq_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/rabbitmq"
)

// swamp is a connection whose writes can block until it is closed.
type swamp struct {
	net.Conn
	stuck  *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (s *swamp) Write(b []byte) (int, error) {
	if s.stuck.Load() {
		<-s.closed
	}
	return s.Conn.Write(b)
}

func (s *swamp) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// TestStuckPublish ends the context of a Publish that hangs in a write.
func TestStuckPublish(t *testing.T) {
	t.Parallel()
	name := newQueue(t, nil)
	var stuck atomic.Bool
	p := publisher(t, func(c *rabbitmq.Config) {
		dial := through(server(t))
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return &swamp{Conn: conn, stuck: &stuck, closed: make(chan struct{})}, err
		}
	})
	msgs := []postrider.Message{event(name, "a"), event(name, "b")}
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	stuck.Store(true)
	begin := time.Now()
	errs := within(t, p, 200*time.Millisecond, msgs)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("Publish took %v, its context ended after 200 ms", took)
	}
	expectClasses(t, errs, []postrider.Class{postrider.ClassUnknown, postrider.ClassUnavailable})
	stuck.Store(false)
	for deadline := time.Now().Add(30 * time.Second); within(t, p, 5*time.Second, msgs) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the publisher has not recovered")
		}
	}
}

// TestCloseEndsEverything looks for goroutines of a closed publisher.
func TestCloseEndsEverything(t *testing.T) {
	name := newQueue(t, nil)
	p := publisher(t, nil)
	var run sync.WaitGroup
	for i := range 8 {
		run.Go(func() {
			if errs := p.Publish(t.Context(), []postrider.Message{event(name, fmt.Sprint(i)), event("test-missing", "")}); len(errs) != 2 {
				t.Errorf("got %v", errs)
			}
		})
	}
	run.Wait()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, "rabbitmq.(*channel)") || strings.Contains(stack, "rabbitmq.(*link)") {
			t.Errorf("still at work: %s", stack)
		}
	}
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "a")}); len(errs) != 1 || errs[0] == nil {
		t.Errorf("after Close: %v", errs)
	}
}
