package inspection_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/internal/inspection"
)

// candid is a publisher that answers the third request about its settings and all later ones.
type candid struct {
	discard.Publisher
	asked int
}

func (c *candid) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	if c.asked++; c.asked == 1 {
		<-ctx.Done() // it hangs
		return broker.Inspection{}, ctx.Err()
	}
	if c.asked == 2 {
		return broker.Inspection{}, errors.New("down")
	}
	found := broker.Inspection{
		Confirmed: "On the disks of two servers.",
		Settings:  []broker.Setting{{Name: "replicas", Value: "2"}},
		Warnings:  []broker.Warning{{Danger: "it may burn", Remedy: "buy a hose"}},
	}
	for _, name := range names {
		found.Warnings = append(found.Warnings, broker.Warning{Danger: "there is no " + name, Remedy: "create " + name})
	}
	return found, nil
}

// TestWatch: the watch asks until the destination answers, asks again for new names, and logs
// nothing twice.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		pub := &candid{}
		w := inspection.New(pub, slog.New(slog.NewTextHandler(&log, nil)), []string{"orders"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		var failures, answers int
		go func() {
			defer close(ended)
			w.Run(ctx, func(err error) {
				if err != nil {
					failures++
				} else {
					answers++
				}
			})
		}()
		time.Sleep(inspection.Timeout + 3*inspection.Pause)
		synctest.Wait()
		if answers != 1 || failures != 2 {
			t.Errorf("%d answers and %d failures, want 1 and 2", answers, failures)
		}
		for i := range 300 {
			w.Sent("orders")
			w.Sent(fmt.Sprintf("tenant-%d", i%150))
		}
		time.Sleep(time.Minute)
		cancel()
		<-ended
		if answers != 2 {
			t.Errorf("%d answers, want one for the names that came together", answers)
		}
		for want, times := range map[string]int{
			`level=INFO msg="relay: confirmed means" meaning="On the disks of two servers." settings="replicas=2"`:             1,
			`level=WARN msg="relay: the destination needs attention" danger="it may burn" remedy="buy a hose"`:                 1,
			`level=WARN msg="relay: the destination needs attention" danger="there is no orders" remedy="create orders"`:       1,
			`level=WARN msg="relay: the destination needs attention" danger="there is no tenant-7" remedy="create tenant-7"`:   1,
			`level=WARN msg="relay: the destination needs attention" danger="there is no tenant-98" remedy="create tenant-98"`: 1,
			`there is no tenant-99`: 0, // a hundred names are enough
		} {
			if n := strings.Count(log.String(), want); n != times {
				t.Errorf("the log says %d times, want %d: %s", n, times, want)
			}
		}
	})
}

func TestNothingToAsk(t *testing.T) {
	t.Parallel()
	w := inspection.New(discard.New(), slog.New(slog.DiscardHandler), []string{"orders"})
	w.Sent("orders")
	w.Run(t.Context(), nil)
}

// TestRefusedNames: the watch does not ask about a name that no message can have, because the
// request itself may do harm.
func TestRefusedNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := inspection.New(&candid{asked: 2}, slog.New(slog.NewTextHandler(&log, nil)), nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx, func(error) {}) }()
		w.Called("never", []error{postrider.Permanent(errors.New("too long"))})
		w.Called("missing", []error{postrider.NameUnavailable(errors.New("not there"))})
		w.Called("fine", nil)
		time.Sleep(time.Minute)
		cancel()
		<-ended
		if text := log.String(); strings.Contains(text, "never") || !strings.Contains(text, "no missing") || !strings.Contains(text, "no fine") {
			t.Errorf("got %s", text)
		}
	})
}
