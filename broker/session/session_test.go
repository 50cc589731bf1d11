package session_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/broker/session"
)

type line struct {
	lost   chan struct{}
	closed atomic.Int32
}

func (l *line) Lost() <-chan struct{} { return l.lost }
func (l *line) Close()                { l.closed.Add(1) }

var quiet = slog.New(slog.DiscardHandler)

func TestOpenedOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened atomic.Int32
		k := session.New("test", quiet, func(context.Context) (*line, error) {
			opened.Add(1)
			time.Sleep(time.Second)
			return &line{lost: make(chan struct{})}, nil
		})
		var run sync.WaitGroup
		for range 8 {
			run.Go(func() {
				if _, err := k.Get(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		run.Wait()
		one, _ := k.Get(t.Context())
		if opened.Load() != 1 {
			t.Errorf("opened %d times", opened.Load())
		}
		close(one.lost)
		two, err := k.Get(t.Context())
		if err != nil || two == one || one.closed.Load() != 1 {
			t.Errorf("the lost session is still there, or not closed: %v", err)
		}
		k.Close()
		k.Close()
		if two.closed.Load() != 1 {
			t.Errorf("closed %d times", two.closed.Load())
		}
		if _, err := k.Get(t.Context()); err == nil {
			t.Error("a closed keeper gave a session")
		}
	})
}

func TestGetEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := session.New("test", quiet, func(ctx context.Context) (*line, error) {
			select {
			case <-time.After(time.Minute):
				return &line{lost: make(chan struct{})}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		begin := time.Now()
		k.Close()
		if time.Since(begin) != 0 {
			t.Errorf("Close took %v", time.Since(begin))
		}
	})
}

func TestOutageIsToldOnce(t *testing.T) {
	var text strings.Builder
	down := true
	k := session.New("test", slog.New(slog.NewTextHandler(&text, nil)), func(context.Context) (*line, error) {
		if down {
			return nil, errors.New("nobody there")
		}
		return &line{lost: make(chan struct{})}, nil
	})
	for range 3 {
		if _, err := k.Get(t.Context()); err == nil {
			t.Error("got a session")
		}
	}
	down = false
	if _, err := k.Get(t.Context()); err != nil {
		t.Error(err)
	}
	k.Close()
	if strings.Count(text.String(), "cannot connect") != 1 || strings.Count(text.String(), "connected again") != 1 {
		t.Errorf("the log says\n%s", text.String())
	}
}
