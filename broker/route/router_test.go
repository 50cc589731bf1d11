package route

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/broker/memory"
)

func newRouter(tb testing.TB, rules []Rule, destinations map[string]postrider.Publisher, cfg Config) *Router {
	tb.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	table, err := NewTable(rules)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := NewRouter(table, destinations, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// spy is a publisher that records its calls.
type spy struct {
	postrider.Publisher
	calls  [][]postrider.Message
	closed int
	inspected
}

type inspected struct {
	names []string
	found broker.Inspection
	err   error
}

func (s *spy) Publish(ctx context.Context, msgs []postrider.Message) []error {
	s.calls = append(s.calls, msgs)
	if s.Publisher == nil {
		return nil
	}
	return s.Publisher.Publish(ctx, msgs)
}

func (s *spy) Close() error {
	s.closed++
	return errors.New("close")
}

func (s *spy) Inspect(_ context.Context, names []string) (broker.Inspection, error) {
	s.names = names
	return s.found, s.err
}

func TestUntouchedMessagesAreNotCopied(t *testing.T) {
	a, b := &spy{}, &spy{}
	r := newRouter(t, []Rule{
		{Match: Match{Types: []string{"a"}}, Destination: "a"},
		{Match: Match{Types: []string{"b"}}, Destination: "b", Name: "renamed"},
	}, map[string]postrider.Publisher{"a": a, "b": b}, Config{})
	msgs := []postrider.Message{{Type: "a", Topic: "x"}, {Type: "a"}, {Type: "a"}}
	if errs := r.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	if &a.calls[0][0] != &msgs[0] || len(a.calls[0]) != 3 {
		t.Error("a was not given the caller's slice")
	}
	msgs = append(msgs, postrider.Message{Type: "b"})
	if errs := r.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	if len(a.calls) != 2 || &a.calls[1][0] == &msgs[0] || msgs[3].Topic != "" {
		t.Error("the caller's messages were changed")
	}
	if errs := r.Publish(t.Context(), nil); errs != nil || len(a.calls) != 2 {
		t.Error("an empty call was passed on")
	}
}

// TestRouterAgainstModel sends random batches from several goroutines to destinations that refuse
// some messages.
func TestRouterAgainstModel(t *testing.T) {
	rules := []Rule{
		{Match: Match{Types: []string{"a"}}, Destination: "a", Name: "to-{type}", ID: "x-{id}"},
		{Match: Match{Types: []string{"b"}}, Destination: "b"},
		{Match: Match{Types: []string{"c"}}, Destination: "a", Name: "{tenant}"},
		{Match: Match{Types: []string{"d"}}, Drop: true},
	}
	bad := errors.New("bad")
	fail := func(m postrider.Message) error {
		if string(m.Payload) == "bad" {
			return bad
		}
		return nil
	}
	a, b := memory.New(), memory.New()
	a.Fail(fail)
	b.Fail(fail)
	r := newRouter(t, rules, map[string]postrider.Publisher{"a": a, "b": b}, Config{Only: Match{Tenants: []string{"t", ""}}})
	var run sync.WaitGroup
	for worker := range 4 {
		run.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 3))
			for range 300 {
				msgs := make([]postrider.Message, random.IntN(12))
				for i := range msgs {
					msgs[i] = postrider.Message{
						ID: postrider.NewID(), Type: string("abcde"[random.IntN(5)]), TenantID: []string{"t", "", "u"}[random.IntN(3)],
						Payload: []byte([]string{"good", "bad"}[random.IntN(5)/4]),
					}
				}
				before := slices.Clone(msgs)
				errs := r.Publish(context.Background(), msgs)
				for i, m := range msgs {
					var got error
					if errs != nil {
						got = errs[i]
					}
					if !expected(m, got, bad) {
						t.Errorf("%+v: %v", m, got)
					}
				}
				same := func(a, b postrider.Message) bool { return a.Topic == b.Topic && a.WireID == b.WireID && a.ID == b.ID }
				if !slices.EqualFunc(before, msgs, same) {
					t.Error("the caller's messages were changed")
				}
			}
		})
	}
	run.Wait()
	for _, m := range a.Messages() {
		if m.Type == "a" && (m.Topic != "to-a" || m.WireID != "x-"+m.ID.String()) || m.Type == "c" && m.Topic != "t" || m.TenantID == "u" {
			t.Errorf("a got %+v", m)
		}
	}
	for _, m := range b.Messages() {
		if m.Type != "b" || m.Topic != "" || m.WireID != "" {
			t.Errorf("b got %+v", m)
		}
	}
	if r.Dropped() == 0 || r.Passed() == 0 || r.Unmatched()["e"] == 0 || len(r.Unmatched()) != 1 {
		t.Errorf("dropped %d, passed %d, unmatched %v", r.Dropped(), r.Passed(), r.Unmatched())
	}
}

func expected(m postrider.Message, got, bad error) bool {
	switch {
	case m.TenantID == "u", m.Type == "d":
		return got == nil
	case m.Type == "e":
		return errors.Is(got, ErrNoRoute)
	case m.Type == "c" && m.TenantID == "":
		return postrider.ClassOf(got) == postrider.ClassPermanent
	case string(m.Payload) == "bad":
		return errors.Is(got, bad)
	}
	return got == nil
}

func TestDestinationsRunAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := postrider.PublisherFunc(func(context.Context, postrider.Message) error {
			time.Sleep(time.Second)
			return nil
		})
		r := newRouter(t, []Rule{
			{Match: Match{Types: []string{"a"}}, Destination: "a"},
			{Match: Match{Types: []string{"b"}}, Destination: "b"},
			{Match: Match{Types: []string{"c"}}, Destination: "c"},
		}, map[string]postrider.Publisher{"a": slow, "b": slow, "c": slow}, Config{})
		start := time.Now()
		if errs := r.Publish(t.Context(), []postrider.Message{{Type: "c"}, {Type: "a"}, {Type: "b"}}); errs != nil {
			t.Error(errs)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestNothingBehindARefusedMessage(t *testing.T) {
	b := memory.New()
	r := newRouter(t, []Rule{{Match: Match{Types: []string{"good"}}, Destination: "b"}}, map[string]postrider.Publisher{"b": b}, Config{})
	errs := r.Publish(t.Context(), []postrider.Message{
		{Type: "good", Key: "k"}, {Type: "lost", Key: "k"}, {Type: "good", Key: "k"}, {Type: "good", Key: "other"}, {Type: "lost"}, {Type: "good"},
	})
	for i, want := range []error{nil, ErrNoRoute, postrider.ErrNotTried, nil, ErrNoRoute, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("%d: %v, want %v", i, errs[i], want)
		}
	}
	if n := len(b.Messages()); n != 3 || !r.KeepsOrder() {
		t.Errorf("%d messages were sent", n)
	}
}

func TestKeepsOrder(t *testing.T) {
	keeper, other := discard.New(), &spy{}
	both := map[string]postrider.Publisher{"keeper": keeper, "other": other}
	for want, rules := range map[bool][][]Rule{
		true:  {{{Destination: "keeper"}}, {{Match: Match{Types: []string{"x"}}, Drop: true}, {Destination: "keeper", Name: "{type}"}}},
		false: {{{Destination: "other"}}, {{Match: Match{Types: []string{"x"}}, Destination: "other"}, {Destination: "keeper"}}},
	} {
		for _, rules := range rules {
			if got := newRouter(t, rules, both, Config{}).KeepsOrder(); got != want {
				t.Errorf("%+v: %v", rules, got)
			}
		}
	}
}

// TestOutageOfADestination takes one of several destinations down: the others must continue, and
// only its own names are held.
func TestOutageOfADestination(t *testing.T) {
	gone, ok := memory.New(), memory.New()
	down := errors.New("connection refused")
	gone.Fail(func(postrider.Message) error { return postrider.Unavailable(down) })
	destinations := map[string]postrider.Publisher{"gone": gone, "ok": ok}
	both := []Rule{{Match: Match{Types: []string{"a"}}, Destination: "gone"}, {Destination: "ok"}}
	msgs := []postrider.Message{{Type: "a", Key: "k"}, {Type: "b", Key: "l"}, {Type: "a", Key: "k"}}
	r := newRouter(t, both, destinations, Config{})
	for _, some := range [][]postrider.Message{msgs, msgs[:1]} { // the second time unchanged
		errs := r.Publish(t.Context(), some)
		if len(errs) != len(some) || !errors.Is(errs[0], down) || postrider.ScopeOf(errs[0]) != postrider.ScopeName {
			t.Fatalf("got %v", errs)
		}
		if len(some) > 1 && (errs[1] != nil || !errors.Is(errs[2], postrider.ErrNotTried) || postrider.ScopeOf(errs[2]) != postrider.ScopeDestination) {
			t.Errorf("got %v", errs)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if errs := r.Publish(ctx, msgs); postrider.ScopeOf(errs[0]) != postrider.ScopeDestination {
		t.Errorf("cancelled: got %v", errs)
	}
	one := newRouter(t, []Rule{{Destination: "gone"}}, destinations, Config{})
	if errs := one.Publish(t.Context(), msgs); postrider.ScopeOf(errs[0]) != postrider.ScopeDestination {
		t.Errorf("the only destination: got %v", errs)
	}
}

func TestNameOf(t *testing.T) {
	r := newRouter(t, []Rule{
		{Match: Match{Types: []string{"plain"}}, Destination: "discard"},
		{Match: Match{Types: []string{"dropped"}}, Drop: true},
		{Match: Match{Types: []string{"order.*"}}, Destination: "memory", Name: "{type}.{tenant}", ID: "x-{id}"},
		{Match: Match{Types: []string{"own"}}, Destination: "memory"},
	}, map[string]postrider.Publisher{"discard": discard.New(), "memory": memory.New()}, Config{Only: Match{Tenants: []string{"t"}}})
	for kind, want := range map[string]string{
		"plain": "discard", "dropped": "", "order.placed": "memory/order.placed.t", "own": "memory/own", "none": "",
	} {
		if got := r.NameOf(&postrider.Message{Type: kind, TenantID: "t"}); got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
	if got := r.NameOf(&postrider.Message{Type: "own", TenantID: "another"}); got != "" {
		t.Errorf("filtered: got %q", got)
	}
	if r.Passed() != 0 || r.Dropped() != 0 || len(r.Unmatched()) != 0 {
		t.Error("who asks for a name is counted")
	}
}

func TestShortResultIsNotTakenForSuccess(t *testing.T) {
	broken := &spy{Publisher: broken{}}
	r := newRouter(t, []Rule{{Destination: "d"}}, map[string]postrider.Publisher{"d": broken}, Config{})
	if errs := r.Publish(t.Context(), make([]postrider.Message, 2)); len(errs) != 2 || errs[0] == nil || errs[1] == nil {
		t.Errorf("%v", errs)
	}
}

type broken struct{ postrider.Publisher }

func (broken) Publish(context.Context, []postrider.Message) []error { return []error{nil} }

func TestMistakesOfRouters(t *testing.T) {
	table, err := NewTable([]Rule{{Destination: "nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewRouter(table, map[string]postrider.Publisher{"b": nil, "a": discard.New()}, Config{Only: Match{Types: []string{""}}})
	for _, want := range []string{`no destination "nowhere": there are ["a" "b"]`, `destination "b" is nil`, "only: types[0]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing says %q in %v", want, err)
		}
	}
	var rule *RuleError
	if !errors.As(err, &rule) || rule.Field != "destination" {
		t.Errorf("no RuleError in %v", err)
	}
	if _, err := NewRouter(nil, nil, Config{}); err == nil {
		t.Error("no table, no error")
	}
}

func TestCloseOnce(t *testing.T) {
	a, b := &spy{}, &spy{}
	r := newRouter(t, []Rule{{Destination: "a"}}, map[string]postrider.Publisher{"a": a, "b": b}, Config{})
	for range 2 {
		if err := r.Close(); err == nil {
			t.Error("the destinations' errors were swallowed")
		}
	}
	if a.closed != 1 || b.closed != 1 {
		t.Errorf("closed %d and %d times", a.closed, b.closed)
	}
}

func TestInspect(t *testing.T) {
	a := &spy{inspected: inspected{found: broker.Inspection{Confirmed: "On disk.", Settings: []broker.Setting{{Name: "s", Value: "1"}},
		Warnings: []broker.Warning{{Danger: "d", Remedy: "r"}}}}}
	b := &spy{inspected: inspected{err: errors.New("down")}}
	rules := []Rule{
		{Match: Match{Types: []string{"x"}}, Destination: "a", Name: "queue"},
		{Match: Match{Types: []string{"y"}}, Destination: "b"},
		{Match: Match{Types: []string{"z"}}, Destination: "c"},
	}
	r := newRouter(t, rules, map[string]postrider.Publisher{"a": a, "b": b, "c": discard.New()}, Config{})
	found, err := r.Inspect(t.Context(), []string{"given"})
	want := broker.Inspection{Confirmed: "a: On disk.", Settings: []broker.Setting{{Name: "a: s", Value: "1"}},
		Warnings: []broker.Warning{{Danger: "a: d", Remedy: "r"}}}
	if !reflect.DeepEqual(found, want) || err == nil || !strings.Contains(err.Error(), `"b": down`) {
		t.Errorf("%+v, %v", found, err)
	}
	if !slices.Equal(a.names, []string{"given", "queue"}) || !slices.Equal(b.names, []string{"given"}) {
		t.Errorf("asked for %q and %q", a.names, b.names)
	}
	r = newRouter(t, rules[:1], map[string]postrider.Publisher{"a": a}, Config{})
	if found, err := r.Inspect(t.Context(), nil); err != nil || found.Confirmed != "On disk." {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestUnmatchedIsLoudOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRouter(t, nil, nil, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for i := range 150 { // seconds
			r.Publish(t.Context(), []postrider.Message{{Type: "lost"}, {Type: fmt.Sprintf("lost%d", i%2)}})
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines\n%s", len(lines), &log)
		}
		for _, want := range []string{"level=ERROR", "type=lost", "count=121", `lost=121 lost0=60 lost1=60`, "drop: true"} {
			if !strings.Contains(lines[2], want) {
				t.Errorf("nothing says %q in %s", want, lines[2])
			}
		}
	})
}

func TestUnmatchedTypesAreBounded(t *testing.T) {
	r := newRouter(t, nil, nil, Config{})
	for i := range 2 * maxTypes {
		r.Publish(t.Context(), []postrider.Message{{Type: fmt.Sprint(i)}})
	}
	if got := r.Unmatched(); len(got) != maxTypes+1 || got[otherTypes] != maxTypes {
		t.Errorf("%d types, %d others", len(got), got[otherTypes])
	}
}

func BenchmarkRouter(b *testing.B) {
	id := postrider.NewID()
	msgs := make([]postrider.Message, 500)
	for i := range msgs {
		msgs[i] = postrider.Message{ID: id, Type: fmt.Sprintf("type%d", i%20), TenantID: fmt.Sprintf("tenant%d", i%7), AggregateType: "order"}
	}
	var many []Rule
	for i := range 19 {
		many = append(many, Rule{Match: Match{Types: []string{fmt.Sprintf("*e%d", i)}}, Destination: string("ab"[i%2]), Name: "{tenant}.{type}"})
	}
	for name, rules := range map[string][]Rule{
		"untouched": {{Destination: "a"}},
		"renamed":   {{Destination: "a", Name: "{aggregate_type}.events"}},
		"ids":       {{Destination: "a", Name: "events", ID: "outbox-{id}"}},
		"many":      append(many, Rule{Destination: "a"}),
	} {
		b.Run(name, func(b *testing.B) {
			r := newRouter(b, rules, map[string]postrider.Publisher{"a": discard.New(), "b": discard.New()}, Config{})
			b.ReportAllocs()
			for b.Loop() {
				r.Publish(b.Context(), msgs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(msgs)), "ns/message")
		})
	}
}
