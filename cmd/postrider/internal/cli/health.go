package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/relay"
)

const (
	checkInterval = 5 * time.Second
	stalled       = 60 * time.Second // a relay without progress for so long counts as stalled
	answerWithin  = 30 * time.Second // maximum age of the last answer of a database
)

// health reports the state of the feeds of a process.
type health struct {
	config.Health
	service *service
	scrub   func(string) string
	ctx     context.Context // ends when the process begins to stop
	metrics http.Handler

	mu       sync.Mutex
	progress []progress
}

// progress records the progress of a relay's loops.
type progress struct {
	steps int64
	since time.Time // time of the last progress
}

// alive records the relay's counters, and reports whether they have changed within limit. A relay
// that has not joined its feed, or that waits for an operator, need not make progress.
func (p *progress) alive(s relay.Stats, now time.Time, limit time.Duration) bool {
	steps := s.Reads + s.Settles + s.Balances
	if steps != p.steps || steps == 0 || s.Paused != "" {
		p.steps, p.since = steps, now
	}
	return now.Sub(p.since) < limit
}

// watch checks progress until ctx ends, so that the result does not depend on how often /livez is
// called.
func (h *health) watch(ctx context.Context) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		_ = h.live()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// live returns an error that names the stalled relays.
func (h *health) live() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for i := range h.service.feeds {
		feed := &h.service.feeds[i]
		limit := max(stalled, 3*feed.cfg.BalanceInterval)
		if !h.progress[i].alive(feed.relay.Stats(), time.Now(), limit) {
			errs = append(errs, fmt.Errorf("the relay of feed %s has done nothing for %v", feed.cfg.Feed, limit))
		}
	}
	return errors.Join(errs...)
}

// readiness is the answer to "/readyz?verbose".
type readiness struct {
	Feeds    []feedHealth `json:"feeds"`
	Ready    bool         `json:"ready"`
	Stopping bool         `json:"stopping"`
}

// feedHealth is the part of "/readyz?verbose" about one feed.
type feedHealth struct {
	Feed      string   `json:"feed"`
	Ready     bool     `json:"ready"`
	WaitsFor  []string `json:"waits_for"`
	Shards    int      `json:"shards"`
	Quota     int      `json:"quota"`
	Members   int      `json:"members"`
	Buffered  int      `json:"buffered"`
	Paused    string   `json:"paused,omitempty"`
	LastError string   `json:"last_error,omitempty"`
}

// ready returns the state of every feed, and reports whether all are ready.
func (h *health) ready() (found []feedHealth, all bool) {
	all = h.ctx.Err() == nil
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	for i := range h.service.feeds {
		one := h.look(&h.service.feeds[i])
		all = all && one.Ready
		found = append(found, one)
	}
	return found, all
}

func (h *health) look(feed *servedFeed) feedHealth {
	s := feed.relay.Stats()
	f := feedHealth{Feed: feed.cfg.Feed, Shards: s.Shards, Quota: s.Quota, Members: s.Members, Buffered: s.Buffered,
		Paused: h.scrub(s.Paused), WaitsFor: []string{}}
	wait := func(is bool, what string) {
		if is {
			f.WaitsFor = append(f.WaitsFor, what)
		}
	}
	// While an operator has paused the feed, its quota is 0, and the relay is healthy.
	wait(s.Paused != "" && (s.Members == 0 || s.Quota > 0), "an operator")
	wait(feed.pool.answers.silent(max(answerWithin, 3*feed.cfg.BalanceInterval)), "its database")
	wait(s.Members == 0 || s.Shards < s.Quota, "its share of shards")
	failed, last := feed.pool.answers.last()
	for _, d := range feed.to {
		wait(d.answers.silent(0), "destination "+d.name)
		if at, err := d.answers.last(); err != nil && at.After(failed) {
			failed, last = at, err
		}
	}
	if last != nil {
		f.LastError = h.scrub(failed.UTC().Format(time.RFC3339) + " " + last.Error())
	}
	f.Ready = len(f.WaitsFor) == 0
	return f
}
