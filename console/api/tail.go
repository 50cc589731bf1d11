package api

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/postrider/postrider/console/live"
	"github.com/postrider/postrider/desk"
)

// Tail asks for messages as they are enqueued.
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
	tailPage  = 200 // of a busier log this many are shown a second
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
	filter := desk.Filter{Feed: feed, Type: in.Type, Topic: in.Topic, Key: in.Key, Tenant: in.Tenant, Since: time.Now().Add(-time.Minute)}
	return &following{
		send:  func(ctx context.Context, out *sender) error { return s.follow(ctx, log, filter, out) },
		leave: leave,
	}, nil
}

// follow sends what it has not seen. It looks at a whole page each time, because a transaction may commit after one that
// began later.
func (s *Server) follow(ctx context.Context, log desk.Log, filter desk.Filter, out *sender) error {
	ctx, stop := s.work.until(ctx)
	defer stop()
	look := time.NewTicker(tailEvery)
	defer look.Stop()
	seen, silent := map[int64]bool{}, time.Now()
	for {
		page, err := log.Messages(ctx, filter.Feed, filter, 0, tailPage)
		if err != nil {
			return err
		}
		now := make(map[int64]bool, len(page.Items))
		for i := range slices.Backward(page.Items) {
			m := &page.Items[i]
			if now[m.Seq] = true; seen[m.Seq] {
				continue
			}
			data, err := json.Marshal(s.rowOf(m))
			if err == nil {
				err = out.send(live.Event{Name: "message", Data: data})
			}
			if err != nil {
				return err
			}
			silent = time.Now()
		}
		seen = now
		filter.Since = time.Now().Add(-time.Minute) // what is older was seen, or nobody waits for it any more
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
