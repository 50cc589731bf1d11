// Package operator simulates an operator who handles deferred messages with the product's own
// commands. It discards poison, also where it is held because its name is missing, and retries all
// other dead letters. Other held messages are released by the relay itself.
package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/work"
)

// Operator acts every few seconds.
type Operator struct {
	// Postrider runs the command and returns its output.
	Postrider func(ctx context.Context, args ...string) (string, error)
	Log       *slog.Logger

	parked    atomic.Int64
	discarded atomic.Int64
	replayed  atomic.Int64

	mu     sync.Mutex
	buried map[string]record.DeadLetter // those not yet taken, by feed and ID
}

// Buried returns the dead letters that were found since the last call. None escapes it: only the
// operator handles them.
func (o *Operator) Buried() []record.DeadLetter {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Collect(maps.Values(o.buried))
	o.buried = nil
	return all
}

func (o *Operator) bury(l deadLetter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buried == nil {
		o.buried = map[string]record.DeadLetter{}
	}
	o.buried[l.Feed+" "+l.ID] = record.DeadLetter{
		ID: l.ID, Feed: l.Feed, Poison: l.poison(), Attempts: l.Attempts, Tried: l.Tried, Error: l.Error,
	}
}

// every is the interval.
const every = 3 * time.Second

// most is how many dead letters one command handles.
const most = 50

// Run handles dead letters until ctx ends.
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

// Counts returns counts so far, by name.
func (o *Operator) Counts() map[string]int64 {
	return map[string]int64{"parked": o.parked.Load(), "discarded": o.discarded.Load(), "replayed": o.replayed.Load()}
}

type deadLetter struct {
	ID       string    `json:"id"`
	Feed     string    `json:"feed"`
	Consumer string    `json:"consumer"`
	Type     string    `json:"type"`
	Key      string    `json:"key"`
	Status   string    `json:"status"`
	Attempts int       `json:"attempts"`
	Tried    time.Time `json:"tried"`
	Error    string    `json:"error"`
}

func (l deadLetter) poison() bool { return l.Type == work.TypePoison || l.Type == work.TypeForeign }
func (l deadLetter) held() bool   { return l.poison() && l.Status == string(feeds.StatusHeld) }
func (l deadLetter) lost() bool   { return !l.poison() && l.Status == string(feeds.StatusDead) }

// Look handles the current dead letters, and held poison.
func (o *Operator) Look(ctx context.Context) error {
	text, err := o.Postrider(ctx, "dead", "ls", "--status", "dead,held,parked", "--limit", "0", "--json")
	if err != nil {
		return err
	}
	var deadLetters []deadLetter
	if err := json.Unmarshal([]byte(text), &deadLetters); err != nil {
		return fmt.Errorf("dead ls: %w", err)
	}
	for _, l := range deadLetters {
		if l.Status == string(feeds.StatusDead) {
			o.bury(l)
		}
		if l.lost() {
			o.Log.Debug("a dead letter", "id", l.ID, "feed", l.Feed, "key", l.Key, "err", l.Error)
		}
	}
	// A message that the relay may be sending must be parked before it can be discarded.
	key, id := func(l deadLetter) string { return l.Key }, func(l deadLetter) string { return l.ID }
	for feed, keys := range group(deadLetters, deadLetter.held, key) {
		if err := o.act(ctx, "keys park", feed, keys, "poison", &o.parked); err != nil {
			return err
		}
	}
	for feed, ids := range group(deadLetters, deadLetter.poison, id) {
		if err := o.act(ctx, "dead discard", feed, ids, "poison", &o.discarded); err != nil {
			return err
		}
	}
	for feed, ids := range group(deadLetters, deadLetter.lost, id) {
		if err := o.act(ctx, "dead replay", feed, ids, "was refused in an outage", &o.replayed); err != nil {
			return err
		}
	}
	return nil
}

// whose is a flag that names a feed or a consumer.
type whose struct{ flag, name string }

// group returns the names of the selected dead letters, by feed or consumer.
func group(deadLetters []deadLetter, which func(deadLetter) bool, name func(deadLetter) string) map[whose][]string {
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
