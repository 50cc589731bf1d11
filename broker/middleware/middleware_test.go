package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/middleware"
)

var message = postrider.Message{ID: postrider.NewID(), Type: "order.placed", Payload: []byte("secret")}

func TestRecover(t *testing.T) {
	handle := middleware.Wrap(func(context.Context, postrider.Message) error { panic("broken") }, middleware.Recover())
	var p *middleware.PanicError
	if err := handle(t.Context(), message); !errors.As(err, &p) || p.Value != "broken" || !strings.Contains(p.Stack, "TestRecover") {
		t.Errorf("got %v", err)
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handle := middleware.Wrap(func(ctx context.Context, _ postrider.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}, middleware.Timeout(time.Minute))
		begin := time.Now()
		err := handle(t.Context(), message)
		if err == nil || !strings.Contains(err.Error(), "took longer than 1m0s") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestLog(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	outcome := errors.New("no such customer")
	handle := middleware.Wrap(func(context.Context, postrider.Message) error { return outcome }, middleware.Log(log))
	if err := handle(t.Context(), message); !errors.Is(err, outcome) {
		t.Error(err)
	}
	outcome = nil
	if err := handle(t.Context(), message); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"level=WARN", "no such customer", "level=DEBUG", message.ID.String(), "order.placed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("nothing of %s in %s", want, &b)
		}
	}
	if strings.Contains(b.String(), "secret") {
		t.Error("the log has the payload")
	}
}

// TestOrder checks that the first middleware is the outermost, including around a consumer's
// handler.
func TestOrder(t *testing.T) {
	var lines []string
	say := func(name string) postrider.Middleware {
		return func(next postrider.Handler) postrider.Handler {
			return func(ctx context.Context, m postrider.Message) error {
				lines = append(lines, name)
				return next(ctx, m)
			}
		}
	}
	consumer := middleware.Use(once{}, say("a"), say("b"))
	err := consumer.Consume(t.Context(), func(context.Context, postrider.Message) error {
		lines = append(lines, "handler")
		return nil
	})
	if got := strings.Join(lines, " "); err != nil || got != "a b handler" {
		t.Errorf("got %s, %v", got, err)
	}
}

// once delivers one message.
type once struct{ postrider.Consumer }

func (once) Consume(ctx context.Context, handle postrider.Handler) error { return handle(ctx, message) }
