package postrider_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

var (
	_ postrider.Publisher = postrider.PublisherFunc(nil)
	_ broker.OrderKeeper  = postrider.PublisherFunc(nil)
)

func TestPublisherFunc(t *testing.T) {
	refused := postrider.Permanent(errors.New("refused"))
	var handled []string
	f := postrider.PublisherFunc(func(_ context.Context, m postrider.Message) error {
		handled = append(handled, m.Type)
		if m.Type == "bad" {
			return refused
		}
		return nil
	})

	if errs := f.Publish(t.Context(), []postrider.Message{{Type: "a"}, {Type: "b"}}); errs != nil {
		t.Errorf("got %v, want nil when all are dealt with", errs)
	}
	errs := f.Publish(t.Context(), []postrider.Message{{Type: "c"}, {Type: "bad"}, {Type: "d"}, {Type: "e"}})
	if len(errs) != 4 || errs[0] != nil || !errors.Is(errs[1], refused) {
		t.Fatalf("got %v", errs)
	}
	for _, err := range errs[2:] { // not the cause, and not tried
		if postrider.ClassOf(err) != postrider.ClassUnavailable {
			t.Errorf("behind the failure: got %v, want it unavailable", err)
		}
	}
	if want := []string{"a", "b", "c", "bad"}; !slices.Equal(handled, want) {
		t.Errorf("handled %q, want %q", handled, want)
	}
	if !f.KeepsOrder() || f.Close() != nil {
		t.Error("KeepsOrder or Close is wrong")
	}
}
