package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/postrider/postrider/admin/console/internal/guard"
	"github.com/postrider/postrider/admin/console/internal/live"
)

const (
	heartbeat   = 15 * time.Second
	writeWithin = 10 * time.Second
	// streamLife is the maximum duration of a stream. The browser then reconnects by itself, and is
	// authenticated again.
	streamLife = 30 * time.Minute
)

// stream converts a method that sends events until it returns to a route.
func stream[I any, P interface {
	*I
	named() string
}](open func(s *Server, ctx context.Context, d *database, in P, client string) (*following, error)) func(*Server, huma.API, huma.Operation) {
	return func(s *Server, api huma.API, op huma.Operation) {
		op.Responses["200"] = &huma.Response{Description: "Events", Content: map[string]*huma.MediaType{
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
		}}
		huma.Register(api, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
			d, err := s.database(P(in).named())
			if err != nil {
				return nil, err
			}
			return &huma.StreamResponse{Body: func(hctx huma.Context) { //nolint:contextcheck // it has the context of the request
				r, w := humago.Unwrap(hctx)
				ctx, cancel := context.WithTimeout(r.Context(), streamLife)
				defer cancel()
				f, err := open(s, ctx, d, in, guard.Client(r, s.cfg.Proxies).String())
				if err != nil {
					write(w, s.failure(ctx, d, err))
					return
				}
				defer f.leave()
				out := &sender{w: w, control: http.NewResponseController(w)}
				if out.begin() == nil {
					_ = f.send(ctx, out) // an error means that the client has disconnected
				}
			}}, nil
		})
	}
}

// following is an open stream.
type following struct {
	send  func(ctx context.Context, out *sender) error // returns when the stream ends
	leave func()
}

// sender writes events.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *sender) begin() error {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy must not buffer events
	s.w.WriteHeader(http.StatusOK)
	return s.write("retry: 2000\n\n")
}

func (s *sender) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeWithin)) // not every writer supports deadlines
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

func (s *sender) beat() error { return s.write(": still here\n\n") }

// send writes an event. Its data is JSON on one line.
func (s *sender) send(e live.Event) error {
	id := ""
	if e.ID > 0 {
		id = fmt.Sprintf("id: %d\n", e.ID)
	}
	return s.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, e.Name, e.Data))
}

// EventsOf is a request for the stream of samples.
type EventsOf struct {
	DB
	Last int64 `header:"Last-Event-ID" doc:"of the last sample that was received: those after it are sent"`
}

func (s *Server) events(_ context.Context, d *database, in *EventsOf, client string) (*following, error) {
	watch, err := has(d.watch, "gauges")
	if err != nil {
		return nil, err
	}
	watcher, err := watch.Subscribe(client, in.Last)
	if err != nil {
		return nil, err
	}
	return &following{
		send:  func(ctx context.Context, out *sender) error { return pass(ctx, watcher, out) },
		leave: func() { watch.Leave(watcher) },
	}, nil
}

// pass sends the events of a watcher.
func pass(ctx context.Context, from *live.Watcher, out *sender) error {
	for _, e := range from.First {
		if err := out.send(e); err != nil {
			return err
		}
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case e, more := <-from.Events():
			if !more {
				return nil
			}
			err = out.send(e)
		case <-beat.C:
			err = out.beat()
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}
