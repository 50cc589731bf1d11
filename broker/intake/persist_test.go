package intake_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/broker/intake"
)

func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var text strings.Builder
		var at []time.Duration
		begin := time.Now()
		intake.Persist(ctx, slog.New(slog.NewTextHandler(&text, nil)), "orders", func(ctx context.Context, working func()) error {
			at = append(at, time.Since(begin))
			switch len(at) {
			case 4:
				working()
			case 6:
				cancel()
			}
			return errors.New("gone")
		})
		ms := time.Millisecond
		if want := []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 800 * ms, 1000 * ms}; !slices.Equal(at, want) {
			t.Errorf("tried at %v, want %v", at, want)
		}
		if log := text.String(); strings.Count(log, "cannot receive") != 2 || strings.Count(log, "receiving again") != 1 {
			t.Errorf("the log says\n%s", log)
		}
	})
}
