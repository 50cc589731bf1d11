package broker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/memory"
)

// TestRecallWithoutRecaller checks that every name of a publisher that cannot recall fails, also
// behind a wrapper that has the method.
func TestRecallWithoutRecaller(t *testing.T) {
	plain := postrider.PublisherFunc(func(context.Context, postrider.Message) error { return nil })
	for _, p := range []postrider.Publisher{plain, broker.ObservePublisher("f", plain, nil)} {
		errs := broker.Recall(t.Context(), p, []string{"a", "b"}, time.Now(), func(string) { t.Error("found something") })
		if len(errs) != 2 || errs[0] != broker.ErrCannotRecall || errs[1] != broker.ErrCannotRecall { //nolint:errorlint // the error itself has a meaning
			t.Errorf("got %v", errs)
		}
	}
	b := memory.New()
	if errs := broker.Recall(t.Context(), broker.ObservePublisher("f", b, nil), []string{"a"}, time.Now(), nil); len(errs) != 1 {
		t.Errorf("without a sender: got %v", errs)
	}
	ctx := broker.WithSender(t.Context(), broker.Sender{Name: "s", Term: 1})
	if errs := broker.Recall(ctx, broker.ObservePublisher("f", b, nil), []string{"a"}, time.Now(), nil); errs != nil {
		t.Errorf("behind an observer: %v", errs)
	}
}

// TestCannotRecallHasAReason checks that the reason can be distinguished from a destination that
// never can.
func TestCannotRecallHasAReason(t *testing.T) {
	cause := errors.New("cause")
	err := broker.CannotRecall("stream %s: %w", "orders", cause)
	if !errors.Is(err, broker.ErrCannotRecall) || !errors.Is(err, cause) || !strings.HasSuffix(err.Error(), ": stream orders: cause") {
		t.Errorf("got %v", err)
	}
}

// TestEachName checks that all names are asked, no more at a time than allowed, and that found is
// not called concurrently.
func TestEachName(t *testing.T) {
	var names, found []string
	for n := range 50 {
		names = append(names, fmt.Sprint(n))
	}
	var running, most atomic.Int32
	failing := errors.New("failing")
	errs := broker.EachName(names, 4, func(id string) { found = append(found, id) }, func(name string, found func(string)) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		found(name)
		if name == "7" {
			return failing
		}
		return nil
	})
	slices.Sort(found)
	slices.Sort(names)
	if !slices.Equal(found, names) || most.Load() > 4 {
		t.Errorf("found %q with %d at a time", found, most.Load())
	}
	if len(errs) != 50 || errs[7] != failing || errs[8] != nil { //nolint:errorlint // not wrapped
		t.Errorf("got %v", errs)
	}
	none := func(string, func(string)) error { return nil }
	if errs := broker.EachName(names, 4, nil, none); errs != nil {
		t.Errorf("without failures: %v", errs)
	}
}
