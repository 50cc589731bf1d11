package postridertest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/postridertest"
)

// send publishes messages with the given keys in one call. It returns the arrived messages, as
// "key+number", and the errors.
func send(t *testing.T, f postridertest.Faults, keys ...string) (arrived string, errs []error, in *postridertest.Injector) {
	t.Helper()
	broker := memory.New()
	in = postridertest.Inject(t, f)
	errs = in.Publisher(broker).Publish(t.Context(), numbered(keys...))
	var names []string
	for _, m := range broker.Messages() {
		names = append(names, m.Key+string(m.Payload))
	}
	return strings.Join(names, " "), errs, in
}

func numbered(keys ...string) []postrider.Message {
	count := make(map[string]int)
	var msgs []postrider.Message
	for _, key := range keys {
		count[key]++
		m := postrider.Event("happened", postrider.Aggregate{}, []byte(strconv.Itoa(count[key])))
		m.Key = key
		msgs = append(msgs, m)
	}
	return msgs
}

// classes formats the errors of a call in one line.
func classes(errs []error) string {
	var names []string
	for _, err := range errs {
		switch {
		case err == nil:
			names = append(names, "ok")
		case errors.Is(err, postrider.ErrNotTried):
			names = append(names, "not tried")
		default:
			names = append(names, postrider.ClassOf(err).String())
		}
	}
	return strings.Join(names, ", ")
}

func TestFaultsOfPublishers(t *testing.T) {
	nth, every := postridertest.Nth, postridertest.Every
	for _, c := range []struct {
		name          string
		faults        postridertest.Faults
		keys, arrived string
		errs          string
	}{
		{"none", postridertest.Faults{}, "a b a", "a1 b1 a2", ""},
		{"duplicate", postridertest.Faults{Duplicate: nth(1, 3)}, "a b a", "a1 b1 a2 a1 a2", ""},
		{"lose answer", postridertest.Faults{LoseAnswer: nth(1)}, "a b a", "a1 b1 a2", "unknown, ok, unknown"},
		{"refuse", postridertest.Faults{Refuse: nth(1)}, "a b a", "b1", "permanent, ok, not tried"},
		{"outage", postridertest.Faults{Outage: every(2)}, "a b c", "a1 c1", "ok, unavailable, ok"},
		{"all", postridertest.Faults{Outage: every(1)}, "a b", "", "unavailable, unavailable"},
		{"of a key", postridertest.Faults{Refuse: every(1).Of(match{OrderKey: "b"})}, "a b c", "a1 c1", "ok, permanent, ok"},
		{"no key", postridertest.Faults{Refuse: nth(1)}, " a", "a1", "permanent, ok"},
		{"reorder", postridertest.Faults{Reorder: every(1)}, "a a b c", "b1 a1 c1 a2", ""},
		{"reorder once", postridertest.Faults{Reorder: nth(1)}, "a a b c", "b1 a1 a2 c1", ""},
		{"reorder one key", postridertest.Faults{Reorder: every(1)}, "a a a", "a1 a2 a3", ""},
		{"reorder key", postridertest.Faults{ReorderKey: nth(1)}, "a b a a", "a2 b1 a1 a3", ""},
		{"crash", postridertest.Faults{Crash: nth(2)}, "a b c", "a1 b1", "unknown, unknown, unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			arrived, errs, _ := send(t, c.faults, strings.Split(c.keys, " ")...)
			if arrived != c.arrived || classes(errs) != c.errs {
				t.Errorf("arrived %q, want %q; errors %q, want %q", arrived, c.arrived, classes(errs), c.errs)
			}
			for _, err := range errs {
				if err != nil && !errors.Is(err, postridertest.ErrInjected) && !errors.Is(err, postrider.ErrNotTried) {
					t.Errorf("%v is not ErrInjected", err)
				}
			}
		})
	}
}

// TestReorderKeepsKeysInOrder checks that reordering loses no message, keeps the order of each key,
// and does change the order.
func TestReorderKeepsKeysInOrder(t *testing.T) {
	changed := false
	for seed := range uint64(200) {
		var keys []string
		for i := range 20 {
			keys = append(keys, string("abc"[(i*7+int(seed)*i/3)%3]))
		}
		arrived, errs, _ := send(t, postridertest.Faults{Seed: seed + 1, Reorder: postridertest.Sometimes(0.5)}, keys...)
		if errs != nil {
			t.Fatal(errs)
		}
		want := make(map[byte]int)
		names := strings.Split(arrived, " ")
		for _, name := range names {
			if want[name[0]]++; name[1:] != strconv.Itoa(want[name[0]]) {
				t.Fatalf("seed %d: %s", seed, arrived)
			}
		}
		if len(names) != len(keys) {
			t.Fatalf("seed %d: %d of %d have arrived", seed, len(names), len(keys))
		}
		for i, name := range names {
			changed = changed || name[:1] != keys[i]
		}
	}
	if !changed {
		t.Error("nothing was reordered")
	}
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := postridertest.Faults{Slow: postridertest.Every(2), Delay: time.Minute}
		began := time.Now()
		arrived, errs, in := send(t, f, "a", "b", "c", "d")
		if d := time.Since(began); d != 2*time.Minute || arrived != "a1 b1 c1 d1" || errs != nil {
			t.Error(d, arrived, errs)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		broker := memory.New()
		errs = in.Publisher(broker).Publish(ctx, numbered("a", "b"))
		if classes(errs) != "unavailable, unavailable" || len(broker.Messages()) > 0 {
			t.Error(errs, broker.Messages())
		}
	})
}

// TestSeedDecides checks that the same seed strikes the same messages, however keys are
// interleaved, and that another seed strikes others.
func TestSeedDecides(t *testing.T) {
	struck := func(seed uint64, mixed bool) string {
		in := postridertest.Inject(t, postridertest.Faults{Seed: seed, Outage: postridertest.Sometimes(0.3)})
		keys := slices.Concat(slices.Repeat([]string{"a"}, 50), slices.Repeat([]string{"b"}, 50))
		if mixed {
			keys = slices.Repeat([]string{"b", "a"}, 50)
		}
		hit := make(map[string]bool)
		pub := in.Publisher(memory.New())
		for _, m := range numbered(keys...) {
			if pub.Publish(t.Context(), []postrider.Message{m}) != nil {
				hit[m.Key+string(m.Payload)] = true
			}
		}
		if n := in.Struck()["Outage"]; n != len(hit) || n < 10 || n > 60 {
			t.Errorf("struck %d, %d have failed", n, len(hit))
		}
		return strings.Join(slices.Sorted(maps.Keys(hit)), " ")
	}
	if a, b := struck(1, false), struck(1, true); a != b {
		t.Errorf("the same seed has struck\n%s\nand then\n%s", a, b)
	}
	if struck(1, false) == struck(2, false) {
		t.Error("seeds make no difference")
	}
}

func TestSeedIsToldOnFailure(t *testing.T) {
	_, said := try(func(t testing.TB) {
		postridertest.Inject(t, postridertest.Faults{Seed: 77, Duplicate: postridertest.Every(2)})
		t.Errorf("something is wrong")
	})
	if !strings.Contains(said, "faults by seed 77 (to repeat: POSTRIDERTEST_SEED=77): Duplicate 0 of 0") {
		t.Error(said)
	}
	if _, said = try(func(t testing.TB) { postridertest.Inject(t, postridertest.Faults{}); t.Errorf("wrong") }); strings.Contains(said, "seed") {
		t.Errorf("logged a seed that nothing depends on: %s", said)
	}
	if _, said = try(func(t testing.TB) {
		postridertest.Inject(t, postridertest.Faults{Seed: 1, Refuse: postridertest.Every(2)})
	}); said != "" {
		t.Error(said)
	}
	t.Setenv(postridertest.SeedVariable, "5")
	if seed := postridertest.Inject(t, postridertest.Faults{}).Seed(); seed != 5 {
		t.Error(seed)
	}
	t.Setenv(postridertest.SeedVariable, "five")
	mustFail(t, func(t testing.TB) { postridertest.Inject(t, postridertest.Faults{}) }, `POSTRIDERTEST_SEED is "five"`)
}

func TestWrappersPassOn(t *testing.T) {
	in := postridertest.Inject(t, postridertest.Faults{})
	if in.String() != "no faults" {
		t.Error(in)
	}
	for _, keeps := range []bool{true, false} {
		p := in.Publisher(closer{keeps})
		if p.(broker.OrderKeeper).KeepsOrder() != keeps || fmt.Sprint(p.Close()) != "closed" {
			t.Error(keeps, p.Close())
		}
	}
	if err := in.Consumer(closer{}).Close(); fmt.Sprint(err) != "closed" {
		t.Error(err)
	}
}

type closer struct{ keeps bool }

func (c closer) KeepsOrder() bool                                   { return c.keeps }
func (closer) Close() error                                         { return errors.New("closed") }
func (closer) Publish(context.Context, []postrider.Message) []error { return nil }
func (closer) Consume(context.Context, postrider.Handler) error     { return nil }
