// Package operator is somebody who looks after messages that were deferred, with the product's own commands: poison is discarded, also where
// it is held because its name is missing; everything else that is dead is sent again. What else is held goes by itself.
package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/test/proof/campaign/work"
)

// Operator looks every few seconds.
type Operator struct {
	// Postrider runs the command and returns what it has printed.
	Postrider func(ctx context.Context, args ...string) (string, error)
	Log       *slog.Logger

	parked    atomic.Int64
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
	return map[string]int64{"parked": o.parked.Load(), "discarded": o.discarded.Load(), "replayed": o.replayed.Load()}
}

type letter struct {
	ID       string `json:"id"`
	Feed     string `json:"feed"`
	Consumer string `json:"consumer"`
	Type     string `json:"type"`
	Key      string `json:"key"`
	Status   string `json:"status"`
	Error    string `json:"error"`
}

func (l letter) poison() bool { return l.Type == work.TypePoison }
func (l letter) held() bool   { return l.poison() && l.Status == string(feeds.StatusHeld) }
func (l letter) lost() bool   { return !l.poison() && l.Status == string(feeds.StatusDead) }

// Look deals with what is dead now, and with poison that is held.
func (o *Operator) Look(ctx context.Context) error {
	text, err := o.Postrider(ctx, "dead", "ls", "--status", "dead,held,parked", "--limit", "0", "--json")
	if err != nil {
		return err
	}
	var deadLetters []letter
	if err := json.Unmarshal([]byte(text), &deadLetters); err != nil {
		return fmt.Errorf("dead ls: %w", err)
	}
	for _, l := range deadLetters {
		if l.lost() {
			o.Log.Debug("a dead letter", "id", l.ID, "feed", l.Feed, "key", l.Key, "err", l.Error)
		}
	}
	// What the relay may be sending has to be parked before it can be discarded.
	key, id := func(l letter) string { return l.Key }, func(l letter) string { return l.ID }
	for feed, keys := range group(deadLetters, letter.held, key) {
		if err := o.act(ctx, "keys park", feed, keys, "poison", &o.parked); err != nil {
			return err
		}
	}
	for feed, ids := range group(deadLetters, letter.poison, id) {
		if err := o.act(ctx, "dead discard", feed, ids, "poison", &o.discarded); err != nil {
			return err
		}
	}
	for feed, ids := range group(deadLetters, letter.lost, id) {
		if err := o.act(ctx, "dead replay", feed, ids, "was refused in an outage", &o.replayed); err != nil {
			return err
		}
	}
	return nil
}

// whose is a flag that names a feed or a consumer.
type whose struct{ flag, name string }

// group returns what is to be named of some letters, by whose they are.
func group(deadLetters []letter, which func(letter) bool, name func(letter) string) map[whose][]string {
	ids := map[whose][]string{}
	for _, l := range deadLetters {
		if !which(l) {
			continue
		}
		w := whose{"--feed", l.Feed}
		if l.Consumer != "" {
			w = whose{"--consumer", l.Consumer}
		}
		ids[w] = append(ids[w], name(l))
	}
	return ids
}

func (o *Operator) act(ctx context.Context, what string, of whose, ids []string, reason string, count *atomic.Int64) error {
	for len(ids) > 0 {
		n := min(len(ids), most)
		args := append(strings.Fields(what), of.flag, of.name, "--reason", reason, "--yes", "--json")
		if _, err := o.Postrider(ctx, append(args, ids[:n]...)...); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		count.Add(int64(n))
		ids = ids[n:]
	}
	return nil
}
