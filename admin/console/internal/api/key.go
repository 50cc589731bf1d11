package api

import (
	"context"
	"net/http"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
)

// BlockedKey is a key whose messages wait behind a failed one.
type BlockedKey struct {
	Feed    string    `json:"feed"`
	Key     string    `json:"key"`
	Since   time.Time `json:"since"`
	Waiting int       `json:"waiting"`
	Head    DeadRow   `json:"head"`
}

// Keys is a request for blocked keys.
type Keys struct {
	DB
	Feed     string `query:"feed"`
	Consumer string `query:"consumer"`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"500"`
}

func (s *Server) keys(ctx context.Context, d *database, in *Keys) ([]BlockedKey, error) {
	deadLetters, err := has(d.DeadLetters, "dead letters")
	if err != nil {
		return nil, err
	}
	feed := in.Feed
	if in.Consumer != "" {
		feed = inbox.Feed(in.Consumer)
	}
	found, err := deadLetters.Blocked(ctx, feed, in.Limit)
	if err != nil {
		return nil, err
	}
	all := make([]BlockedKey, len(found))
	for i := range found {
		k := &found[i]
		all[i] = BlockedKey{k.Feed, k.Key, k.Since.UTC(), k.Waiting, s.deadOf(&k.Head)}
	}
	return all, nil
}

// KeyAct is a request to apply an action to the message that blocks a key.
type KeyAct struct {
	DB
	Body struct {
		Feed   string    `json:"feed" minLength:"1"`
		Key    string    `json:"key" minLength:"1"`
		Act    admin.Act `json:"act" enum:"retry,skip,park"`
		Why    string    `json:"why,omitempty" maxLength:"1000"`
		DryRun bool      `json:"dry_run,omitempty"`
	}
}

func (s *Server) keyAct(ctx context.Context, d *database, in *KeyAct) (*Done, error) {
	deadLetters, err := has(d.DeadLetters, "dead letters")
	if err != nil {
		return nil, err
	}
	b := &in.Body
	filter := admin.Filter{Feed: b.Feed, Key: b.Key, Head: true, Statuses: b.Act.From()}
	done, _, err := s.wouldAct(ctx, deadLetters, filter, 0)
	if err != nil {
		return nil, err
	}
	if done.Count == 0 {
		return nil, failf(http.StatusNotFound, d.command("keys blocked", whose(b.Feed)...), "no message of key %s blocks it", b.Key)
	}
	done.DryRun = b.DryRun
	done.Command = d.commandOn("keys "+string(b.Act), b.Key, append(whose(b.Feed), reason(b.Why)...)...)
	if b.DryRun {
		return done, nil
	}
	done.Sample = nil
	if done.Count, err = deadLetters.Act(ctx, by(ctx, b.Why), b.Act, filter, done.Count); err != nil {
		return nil, err
	}
	s.acted(ctx, d, "key "+string(b.Act), b.Why, "feed", b.Feed, "key", b.Key, "count", done.Count)
	return done, nil
}
