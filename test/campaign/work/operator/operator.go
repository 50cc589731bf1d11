// Package operator is somebody who looks after dead letters with the product's own commands: poison is discarded, everything else is sent again.
package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/test/campaign/work"
)

// Operator looks every few seconds.
type Operator struct {
	// Postrider runs the command and returns what it has printed.
	Postrider func(ctx context.Context, args ...string) (string, error)
	Log       *slog.Logger

	discarded atomic.Int64
	replayed  atomic.Int64
}

// every is how often the operator looks.
const every = 3 * time.Second

// most is how many letters are dealt with in one command.
const most = 50

// Run looks after letters until ctx ends.
func (o *Operator) Run(ctx context.Context) {
	for down := false; ; {
		err := o.Look(ctx)
		if err != nil && !down && ctx.Err() == nil {
			o.Log.Info("the operator cannot work", "err", err)
		}
		down = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// Counts are figures so far, by name.
func (o *Operator) Counts() map[string]int64 {
	return map[string]int64{"discarded": o.discarded.Load(), "replayed": o.replayed.Load()}
}

type letter struct {
	ID       string `json:"id"`
	Feed     string `json:"feed"`
	Consumer string `json:"consumer"`
	Type     string `json:"type"`
}

// Look deals with what is dead now.
func (o *Operator) Look(ctx context.Context) error {
	text, err := o.Postrider(ctx, "dead", "ls", "--status", "dead", "--limit", "0", "--json")
	if err != nil {
		return err
	}
	var letters []letter
	if err := json.Unmarshal([]byte(text), &letters); err != nil {
		return fmt.Errorf("dead ls: %w", err)
	}
	for _, l := range letters {
		o.Log.Debug("a dead letter", "id", l.ID, "feed", l.Feed, "type", l.Type)
	}
	for feed, ids := range group(letters, func(l letter) bool { return l.Type == work.TypePoison }) {
		if err := o.act(ctx, "discard", feed, ids, "poison", &o.discarded); err != nil {
			return err
		}
	}
	for feed, ids := range group(letters, func(l letter) bool { return l.Type != work.TypePoison }) {
		if err := o.act(ctx, "replay", feed, ids, "was refused in an outage", &o.replayed); err != nil {
			return err
		}
	}
	return nil
}

// whose is a flag that names a feed or a consumer.
type whose struct{ flag, name string }

func group(letters []letter, which func(letter) bool) map[whose][]string {
	ids := map[whose][]string{}
	for _, l := range letters {
		if !which(l) {
			continue
		}
		w := whose{"--feed", l.Feed}
		if l.Consumer != "" {
			w = whose{"--consumer", l.Consumer}
		}
		ids[w] = append(ids[w], l.ID)
	}
	return ids
}

func (o *Operator) act(ctx context.Context, what string, of whose, ids []string, reason string, count *atomic.Int64) error {
	for len(ids) > 0 {
		n := min(len(ids), most)
		args := append([]string{"dead", what, of.flag, of.name, "--reason", reason, "--yes", "--json"}, ids[:n]...)
		if _, err := o.Postrider(ctx, args...); err != nil {
			return fmt.Errorf("dead %s: %w", what, err)
		}
		count.Add(int64(n))
		ids = ids[n:]
	}
	return nil
}
