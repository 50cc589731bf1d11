package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "webhook",
		Schemes:   []string{"http", "https"},
		Example:   "https://example.com/hooks",
		Doc:       "Messages are posted to an HTTP endpoint, one a request, signed as Standard Webhooks says.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return broker.From(s, NewPublisher) },
		Bare:      bare,
	})
}

// bare posts a load with net/http alone, with as many concurrent requests as a publisher.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	p, err := broker.From(s, NewPublisher) // provides transport and address
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // each message was confirmed
	target, err := p.target(load.Name)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	payload := make([]byte, load.Size)
	post := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(payload))
		if err != nil {
			return err
		}
		resp, err := p.transport.RoundTrip(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return errors.Join(err, resp.Body.Close(), p.classify(resp))
	}
	var begun atomic.Int64
	var run sync.WaitGroup
	for range p.cfg.Parallel {
		run.Go(func() {
			for ctx.Err() == nil && begun.Add(1) <= int64(load.Messages) {
				if err := post(); err != nil {
					stop(err)
				}
			}
		})
	}
	run.Wait()
	defer stop(nil)
	return context.Cause(ctx)
}
