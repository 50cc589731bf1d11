package route

import (
	"context"
	"errors"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/memory"
)

// slow is a publisher whose calls block until released.
type slow struct {
	*memory.Broker
	began, goOn chan struct{}
}

func (s *slow) Publish(ctx context.Context, msgs []postrider.Message) []error {
	close(s.began)
	<-s.goOn
	return s.Broker.Publish(ctx, msgs)
}

func (*slow) KeepsOrder() bool { return false }

func table(t *testing.T, rules ...Rule) *Table {
	t.Helper()
	made, err := NewTable(rules)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestReplace replaces the table while a Publish is running, which must finish with the old one.
func TestReplace(t *testing.T) {
	old := &slow{Broker: memory.New(), began: make(chan struct{}), goOn: make(chan struct{})}
	arrived := memory.New()
	next := &spy{Publisher: arrived}
	r := newRouter(t, []Rule{{Destination: "old", Name: "first"}}, map[string]postrider.Publisher{"old": old}, Config{})
	ended := make(chan []error)
	go func() { ended <- r.Publish(t.Context(), []postrider.Message{{Type: "a"}, {Type: "b"}}) }()
	<-old.began
	err := r.Replace(table(t, Rule{Match: Match{Types: []string{"b"}}, Drop: true}, Rule{Destination: "next", Name: "second"}),
		map[string]postrider.Publisher{"next": next})
	if err != nil {
		t.Fatal(err)
	}
	if errs := r.Publish(t.Context(), []postrider.Message{{Type: "a"}, {Type: "b"}}); errs != nil {
		t.Error(errs)
	}
	if got := arrived.Messages(); len(got) != 1 || got[0].Topic != "second" || r.Dropped() != 1 {
		t.Errorf("the new table sends %v", got)
	}
	close(old.goOn)
	if errs := <-ended; errs != nil {
		t.Error(errs)
	}
	if got := old.Messages(); len(got) != 2 || got[0].Topic != "first" || got[1].Topic != "first" {
		t.Errorf("the old table has sent %v", got)
	}
	if r.Close(); next.closed != 1 {
		t.Errorf("closed %d times", next.closed)
	}
}

// TestReplaceKeepsThePromise gives a router that keeps order a table with two destinations, one of
// which fails.
func TestReplaceKeepsThePromise(t *testing.T) {
	a, b := memory.New(), memory.New()
	both := map[string]postrider.Publisher{"a": a, "b": b}
	r := newRouter(t, []Rule{{Destination: "a"}}, map[string]postrider.Publisher{"a": a}, Config{})
	split := table(t, Rule{Match: Match{Types: []string{"x"}}, Destination: "b"}, Rule{Destination: "a"})
	if err := r.Replace(split, both); err != nil || !r.KeepsOrder() {
		t.Fatalf("%v, keeps order: %v", err, r.KeepsOrder())
	}
	down := true
	a.Fail(func(m postrider.Message) error {
		if down && m.Key == "1" {
			return errors.New("down")
		}
		return nil
	})
	left := []postrider.Message{
		{Key: "1", Type: "y"}, {Key: "1", Type: "x"}, {Key: "1", Type: "y2"}, // goes to a, then to b, then to a
		{Key: "2", Type: "x"}, {Key: "2", Type: "x2"}, {Type: "x"}, {Type: "y"},
	}
	calls := 0
	for len(left) > 0 {
		if calls++; calls > 10 {
			t.Fatalf("%v never arrive", left)
		}
		var again []postrider.Message
		for i, err := range r.Publish(t.Context(), left) {
			if err != nil {
				again = append(again, left[i])
			}
		}
		for _, m := range b.Messages() {
			if m.Key == "1" && down {
				t.Fatal("a message was overtaken by the next of its key")
			}
		}
		left, down = again, false
	}
	if calls != 4 || len(a.Messages()) != 4 || len(b.Messages()) != 3 {
		t.Errorf("%d calls, %v, %v", calls, a.Messages(), b.Messages())
	}
}

func TestReplaceRefuses(t *testing.T) {
	a := memory.New()
	all := map[string]postrider.Publisher{"a": a}
	r := newRouter(t, []Rule{{Destination: "a"}}, all, Config{})
	if err := r.Replace(table(t, Rule{Destination: "c"}), all); err == nil {
		t.Error("a destination that nobody knows was accepted")
	}
	if err := r.Replace(nil, all); err == nil {
		t.Error("no table was accepted")
	}
	if errs := r.Publish(t.Context(), []postrider.Message{{Type: "x"}}); errs != nil || len(a.Messages()) != 1 {
		t.Errorf("the old table does not work: %v", errs)
	}
}
