package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/watermill"
)

// scripted is a Watermill publisher with scripted answers.
type scripted struct {
	answer func(topic string, m *message.Message) error

	mu   sync.Mutex
	sent []*message.Message
}

func (p *scripted) Publish(topic string, msgs ...*message.Message) error {
	for _, m := range msgs {
		if p.answer != nil {
			if err := p.answer(topic, m); err != nil {
				return err
			}
		}
		p.mu.Lock()
		p.sent = append(p.sent, m)
		p.mu.Unlock()
	}
	return nil
}

func (p *scripted) Close() error { return nil }

func (p *scripted) payloads() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.sent {
		all = append(all, string(m.Payload))
	}
	return all
}

func destination(t *testing.T, pub message.Publisher, cfg watermill.Config) *watermill.Destination {
	t.Helper()
	d, err := watermill.NewDestination(pub, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func letter(key, text string) postrider.Message {
	return postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: key}, []byte(text))
}

// TestOneFailure checks that a failure concerns only its own message, and that nothing of its key
// is sent after it.
func TestOneFailure(t *testing.T) {
	broken := errors.New("broken")
	pub := &scripted{answer: func(_ string, m *message.Message) error {
		if string(m.Payload) == "a2" {
			return broken
		}
		return nil
	}}
	d := destination(t, pub, watermill.Config{})
	errs := d.Publish(t.Context(), []postrider.Message{letter("a", "a1"), letter("a", "a2"), letter("b", "b1"), letter("a", "a3"), letter("b", "b2")})
	if len(errs) != 5 || errs[0] != nil || errs[2] != nil || errs[4] != nil {
		t.Fatalf("got %v", errs)
	}
	if !errors.Is(errs[1], broken) || postrider.ClassOf(errs[1]) != postrider.ClassUnknown {
		t.Errorf("the failed one: got %v, %v", postrider.ClassOf(errs[1]), errs[1])
	}
	if !errors.Is(errs[3], postrider.ErrNotTried) || slices.Contains(pub.payloads(), "a3") {
		t.Errorf("the one behind it: got %v", errs[3])
	}
}

func TestClasses(t *testing.T) {
	refused := errors.New("refused")
	broken := errors.New("broken")
	dial := fmt.Errorf("publish: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	knows := func(err error) error {
		if errors.Is(err, refused) {
			return postrider.Permanent(err)
		}
		return err
	}
	gone := func(context.Context) error { return errors.New("no answer") }
	there := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		err  error
		cfg  watermill.Config
		want postrider.Class
	}{
		"not connected":        {dial, watermill.Config{}, postrider.ClassUnavailable},
		"nobody knows":         {broken, watermill.Config{}, postrider.ClassUnknown},
		"the broker is there":  {broken, watermill.Config{Probe: there}, postrider.ClassUnknown},
		"the broker is gone":   {broken, watermill.Config{Probe: gone}, postrider.ClassUnavailable},
		"refused":              {refused, watermill.Config{Classify: knows, Probe: gone}, postrider.ClassPermanent},
		"refused, not by us":   {broken, watermill.Config{Classify: knows}, postrider.ClassUnknown},
		"cannot be translated": {nil, watermill.Config{Convert: never}, postrider.ClassPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			pub := &scripted{answer: func(string, *message.Message) error { return c.err }}
			errs := destination(t, pub, c.cfg).Publish(t.Context(), []postrider.Message{letter("a", "1")})
			if len(errs) != 1 || postrider.ClassOf(errs[0]) != c.want || c.err != nil && !errors.Is(errs[0], c.err) {
				t.Errorf("got %v, want %v", errs, c.want)
			}
		})
	}
}

func never(*postrider.Message) (string, *message.Message, error) {
	return "", nil, errors.New("not for Watermill")
}

// TestGivenUpCall checks that a publisher that ignores its context delays only its key: Publish
// returns, nothing of the key overtakes the running call, and other keys continue.
func TestGivenUpCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		pub := &scripted{answer: func(_ string, m *message.Message) error {
			if string(m.Payload) == "a1" {
				<-gate
			}
			return nil
		}}
		d := destination(t, pub, watermill.Config{})
		publish := func(m postrider.Message) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if errs := d.Publish(ctx, []postrider.Message{m}); errs != nil {
				return errs[0]
			}
			return nil
		}
		if err := publish(letter("a", "a1")); !errors.Is(err, context.DeadlineExceeded) || postrider.ClassOf(err) != postrider.ClassUnknown {
			t.Errorf("the stuck one: got %v, %v", postrider.ClassOf(err), err)
		}
		if err := publish(letter("a", "a2")); postrider.ClassOf(err) != postrider.ClassUnavailable {
			t.Errorf("behind the stuck one: got %v", err)
		}
		if err := publish(letter("b", "b1")); err != nil {
			t.Errorf("another key: got %v", err)
		}
		close(gate)
		synctest.Wait()
		if err := publish(letter("a", "a2")); err != nil {
			t.Errorf("after the stuck one: got %v", err)
		}
		if got := pub.payloads(); !slices.Equal(got, []string{"b1", "a1", "a2"}) {
			t.Errorf("got %q", got)
		}
	})
}

// TestBoundedCalls checks that calls that never return do not accumulate.
func TestBoundedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		begun := 0
		var mu sync.Mutex
		pub := &scripted{answer: func(string, *message.Message) error {
			mu.Lock()
			begun++
			mu.Unlock()
			<-gate
			return nil
		}}
		d := destination(t, pub, watermill.Config{Parallel: 3})
		for round := range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			var msgs []postrider.Message
			for i := range 4 {
				msgs = append(msgs, letter(fmt.Sprint(round, i), "1"))
			}
			if errs := d.Publish(ctx, msgs); slices.Contains(errs, nil) || len(errs) != 4 {
				t.Errorf("got %v", errs)
			}
			cancel()
		}
		mu.Lock()
		if begun != 3 {
			t.Errorf("%d calls were begun, want 3", begun)
		}
		mu.Unlock()
		close(gate)
	})
}

func TestConfig(t *testing.T) {
	for name, make := range map[string]func() (*watermill.Destination, error){
		"no publisher": func() (*watermill.Destination, error) { return watermill.NewDestination(nil, watermill.Config{}) },
		"format": func() (*watermill.Destination, error) {
			return watermill.NewDestination(&scripted{}, watermill.Config{Format: "xml"})
		},
		"parallel": func() (*watermill.Destination, error) {
			return watermill.NewDestination(&scripted{}, watermill.Config{Parallel: -1})
		},
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
