package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

const (
	sampleSize = 5
	// manyRetries is how many dead letters are sent again at once; more of them make a replay.
	manyRetries = 1000
)

// DeadAct is a request to apply an action to deferred messages.
type DeadAct struct {
	DB
	Body struct {
		Act    admin.Act `json:"act" enum:"retry,discard,park,skip"`
		Filter Filter    `json:"filter"`
		Limit  int       `json:"limit,omitempty" minimum:"0" doc:"to at most so many, oldest first; 0 is no limit"`
		DryRun bool      `json:"dry_run,omitempty"`
		Why    string    `json:"why,omitempty" maxLength:"1000" doc:"required to discard, and for more than one message"`
		Rate   int       `json:"rate,omitempty" minimum:"0" doc:"of a retry: messages a second, as a replay"`
	}
}

func (s *Server) deadAct(ctx context.Context, d *database, in *DeadAct) (*Done, error) {
	act := in.Body.Act
	if err := permit(ctx, http.MethodPost, "/dead/act", string(act)); err != nil {
		return nil, err
	}
	deadLetters, err := has(d.DeadLetters, "dead letters")
	if err != nil {
		return nil, err
	}
	filter, err := in.Body.Filter.admin()
	if err != nil {
		return nil, err
	}
	if filter.Statuses, err = statusesFor(act, &filter); err != nil {
		return nil, err
	}
	done, total, err := s.wouldAct(ctx, deadLetters, filter, in.Body.Limit)
	if err != nil {
		return nil, err
	}
	done.DryRun = in.Body.DryRun
	if done.Count == total { // commands do not support a limit
		done.Command = d.actCommand(act, &filter, done, in.Body.Why, in.Body.Rate)
	}
	if done.Count == 0 && !filter.ID.IsZero() {
		return nil, failf(http.StatusNotFound, d.command("messages show", filter.ID.String()), "message %s is not deferred", filter.ID)
	}
	if in.Body.DryRun || done.Count == 0 {
		return done, nil
	}
	if act == admin.Discard || done.Count > 1 {
		if err := needWhy(in.Body.Why, string(act)+" "+phrase.Quantity(done.Count, "message", "messages")); err != nil {
			return nil, err
		}
	}
	done.Sample = nil
	asReplay := d.Replays != nil && done.Count == total && !slices.ContainsFunc(filter.Statuses, notDead)
	if act == admin.Retry && asReplay && (total > manyRetries || in.Body.Rate > 0) {
		return s.replayDead(ctx, d, filter, in.Body.Rate, in.Body.Why, done)
	}
	// At most as many as were counted, so that later messages are not affected.
	if done.Count, err = deadLetters.Act(ctx, by(ctx, in.Body.Why), act, filter, done.Count); err != nil {
		return nil, err
	}
	s.acted(ctx, d, string(act), in.Body.Why, "count", done.Count, "feed", filter.Feed)
	return done, nil
}

// statusesFor returns the statuses that an action applies to: those of the filter that allow it, or
// the default ones.
func statusesFor(act admin.Act, f *admin.Filter) ([]feeds.Status, error) {
	switch {
	case len(f.Statuses) > 0:
		both := slices.DeleteFunc(slices.Clone(f.Statuses), func(s feeds.Status) bool { return !slices.Contains(act.From(), s) })
		if len(both) == 0 {
			return nil, invalid("%s does nothing to messages that are %s", act, joined(f.Statuses))
		}
		return both, nil
	case act == admin.Retry && f.ID.IsZero():
		return []feeds.Status{feeds.StatusDead}, nil
	}
	return act.From(), nil
}

// wouldAct returns how many messages an action would affect, with a sample, and how many match.
func (s *Server) wouldAct(ctx context.Context, deadLetters admin.DeadLetters, filter admin.Filter, limit int) (done *Done, total int, err error) {
	counts, err := deadLetters.Count(ctx, filter, 0)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range counts {
		total += n
	}
	done = &Done{Count: total}
	if limit > 0 {
		done.Count = min(total, limit)
	}
	found, err := deadLetters.List(ctx, filter, nil, min(done.Count, sampleSize))
	if err != nil {
		return nil, 0, err
	}
	for i := range found {
		done.Sample = append(done.Sample, s.deadOf(&found[i]))
	}
	return done, total, nil
}

// notDead reports whether the relay still sends messages of this status by itself.
func notDead(s feeds.Status) bool { return s == feeds.StatusRetry || s == feeds.StatusHeld }

// actCommand returns the equivalent command, or "" if there is none: the command line can only park
// or skip messages that block a key.
func (d *database) actCommand(act admin.Act, f *admin.Filter, done *Done, why string, rate int) string {
	flags := reason(why)
	switch act {
	case admin.Retry:
		flags = append(atRate(rate), flags...)
		if !f.ID.IsZero() {
			return d.command("dead replay", append(append([]string{f.ID.String()}, whose(f.Feed)...), flags...)...)
		}
		of := *f
		of.Statuses = slices.DeleteFunc(slices.Clone(f.Statuses), notDead)
		if len(of.Statuses) == 0 {
			return "" // the command line cannot retry messages that are not dead
		}
		return d.command("dead replay --all", append(chosenBy(&of), flags...)...)
	case admin.Discard:
		if !f.ID.IsZero() {
			return d.command("dead discard", append(append([]string{f.ID.String()}, whose(f.Feed)...), flags...)...)
		}
		return d.command("dead discard --all", append(chosenBy(f), flags...)...)
	default: // messages that block a key, see below
	}
	if done.Count == 1 && len(done.Sample) == 1 && done.Sample[0].Blocking && done.Sample[0].Key != "" {
		return d.commandOn("keys "+string(act), done.Sample[0].Key, append(whose(done.Sample[0].Feed), flags...)...)
	}
	return ""
}
