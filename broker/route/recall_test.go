package route_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/broker/route"
)

// TestRecall checks that each destination is asked for its own names, and that IDs are those of the
// messages although rules have changed them.
func TestRecall(t *testing.T) {
	table, err := route.NewTable([]route.Rule{
		{Match: route.Match{Types: []string{"order.*"}}, Destination: "own"},
		{Match: route.Match{Types: []string{"mail.*"}}, Destination: "changed", ID: "outbox-{id}"},
		{Match: route.Match{Types: []string{"odd.*"}}, Destination: "odd", ID: "{id}-{type}"},
		{Match: route.Match{Types: []string{"plain.*"}}, Destination: "plain"},
		{Match: route.Match{Types: []string{"gone.*"}}, Drop: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	plain := postrider.PublisherFunc(func(context.Context, postrider.Message) error { return nil })
	r, err := route.NewRouter(table, map[string]postrider.Publisher{"own": memory.New(), "changed": memory.New(), "odd": memory.New(), "plain": plain},
		route.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := broker.WithSender(t.Context(), broker.Sender{Name: "s", Term: 1})
	begin := time.Now()
	var names, want []string
	for _, kind := range []string{"order.placed", "mail.sent", "odd.one", "plain.one", "gone.one"} {
		m := postrider.Event(kind, postrider.Aggregate{Type: "a", ID: "1"}, nil)
		if err := errors.Join(r.Publish(ctx, []postrider.Message{m})...); err != nil {
			t.Fatal(err)
		}
		names = append(names, r.NameOf(&m))
		want = append(want, m.ID.String())
	}
	names = append(names, "unknown/one")
	var found []string
	errs := broker.Recall(ctx, r, names, begin, func(id string) { found = append(found, id) })
	for i, can := range []bool{true, true, false, false, true, false} {
		if len(errs) != 6 || (errs[i] == nil) != can || !can && !errors.Is(errs[i], broker.ErrCannotRecall) {
			t.Fatalf("%q: got %v", names, errs)
		}
	}
	for i, id := range want {
		if slices.Contains(found, id) != (i < 2) {
			t.Errorf("found %q, want the first two of %q", found, want)
		}
	}
	if errs := broker.Recall(ctx, r, names[:2], begin, func(string) {}); errs != nil {
		t.Errorf("without failures: %v", errs)
	}
}
