package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/internal/live"
	"github.com/postrider/postrider/store/feeds"
)

// Tail is a request for the stream of messages as they are enqueued.
type Tail struct {
	DB
	Feed   string `query:"feed"`
	Type   string `query:"type"`
	Topic  string `query:"topic"`
	Key    string `query:"key"`
	Tenant string `query:"tenant"`
}

const (
	tailEvery = time.Second
	tailPage  = 200 // the maximum number of messages per second that are shown

	tailBack = time.Minute      // how far a query goes back,
	tailKeep = 10 * time.Minute // and at most, to include a shown message that is not delivered yet
)

func (s *Server) tail(ctx context.Context, d *database, in *Tail, client string) (*following, error) {
	log, err := has(d.Log, "log")
	if err != nil {
		return nil, err
	}
	feed, err := d.theFeed(ctx, in.Feed)
	if err != nil {
		return nil, err
	}
	leave, err := s.hub.Enter(client)
	if err != nil {
		return nil, err
	}
	filter := admin.Filter{Feed: feed, Type: in.Type, Topic: in.Topic, Key: in.Key, Tenant: in.Tenant, Since: time.Now().Add(-tailBack)}
	return &following{
		send:  func(ctx context.Context, out *sender) error { return s.follow(ctx, log, filter, out) },
		leave: leave,
	}, nil
}

// follow sends new messages, and those whose state has changed. Each query reads a whole page,
// because a transaction may commit after one that began later.
func (s *Server) follow(ctx context.Context, log admin.Log, filter admin.Filter, out *sender) error {
	ctx, stop := s.work.until(ctx)
	defer stop()
	look := time.NewTicker(tailEvery)
	defer look.Stop()
	seen, silent := map[int64][sha256.Size]byte{}, time.Now()
	for {
		page, err := log.Messages(ctx, filter.Feed, filter, 0, tailPage)
		if err != nil {
			return err
		}
		now := make(map[int64][sha256.Size]byte, len(page.Items))
		filter.Since = time.Now().Add(-tailBack) // older messages were shown
		for i := range slices.Backward(page.Items) {
			m := &page.Items[i]
			data, err := json.Marshal(s.rowOf(m))
			if err != nil {
				return err
			}
			if m.Status != feeds.StatusPublished && m.EnqueuedAt.Before(filter.Since) && time.Since(m.EnqueuedAt) < tailKeep {
				filter.Since = m.EnqueuedAt
			}
			if now[m.Seq] = sha256.Sum256(data); now[m.Seq] == seen[m.Seq] {
				continue
			}
			if err := out.send(live.Event{Name: "message", Data: data}); err != nil {
				return err
			}
			silent = time.Now()
		}
		seen = now
		if time.Since(silent) > heartbeat {
			if err := out.beat(); err != nil {
				return err
			}
			silent = time.Now()
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
