package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

// theOperator does one thing at a time.
const theOperator = "operator"

// patience is how long an operator waits for a command.
const patience = time.Minute

// operatorKinds are what operators do with the product's own commands while everything runs. What
// they ask for may happen, and nothing else.
func operatorKinds() []Kind {
	claims, shares := []string{theOperator}, []string{theDatabase}
	return []Kind{
		{
			Name: "operator-pause", Doc: "an operator pauses a feed, and resumes it", Weight: 4, Clean: true,
			Shortest: 2 * time.Second, Longest: 10 * time.Second, Takes: 2 * time.Second, Claims: claims, Shares: shares, Begin: pauseFeed,
		},
		{
			Name: "operator-rewind", Doc: "an operator has a feed send the last seconds again", Weight: 2,
			Shortest: time.Second, Longest: 3 * time.Second, Takes: 2 * time.Second, Claims: claims, Shares: shares, Begin: rewindFeed,
		},
		{
			Name: "operator-replay", Doc: "an operator has single delivered messages sent again", Weight: 3,
			Shortest: time.Second, Longest: 3 * time.Second, Takes: 3 * time.Second, Claims: claims, Shares: shares, Begin: replayMessages,
		},
		{
			Name: "operator-shards", Doc: "an operator changes the number of shards of a feed, and changes it back", Weight: 3, Clean: true,
			Shortest: 2 * time.Second, Longest: 8 * time.Second, Takes: 6 * time.Second, Shares: shares,
			// A change waits until its relays and its destination work.
			Claims: slices.Concat(claims, []string{theRelays}, world.Destinations()), Begin: changeShards,
		},
	}
}

// command runs a command of the product, whose output is JSON, as an operator.
func command(ctx context.Context, w *world.World, into any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := w.Postrider(ctx, append(args, "--json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// done is the output of commands that change something.
type done struct {
	Count int64 `json:"count"`
}

func pauseFeed(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	feed, err := pick(random, w.Destinations())
	if err != nil {
		return nil, err
	}
	if err := command(ctx, w, &done{}, "feeds", "pause", feed, "--reason", "maintenance"); err != nil {
		return nil, err
	}
	return &Running{Target: feed, Touches: []string{feed}, Heal: func(ctx context.Context) error {
		return command(ctx, w, &done{}, "feeds", "resume", feed, "--reason", "maintenance is over")
	}}, nil
}

func rewindFeed(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	feed, err := pick(random, w.Destinations())
	if err != nil {
		return nil, err
	}
	to := fmt.Sprintf("%ds", 2+random.IntN(5))
	var d done
	if err := command(ctx, w, &d, "feeds", "rewind", feed, "--to", to, "--reason", "an index was lost", "--yes"); err != nil {
		return nil, err
	}
	return &Running{Target: feed, Detail: fmt.Sprintf("%d messages, by %s", d.Count, to), Touches: []string{feed}, Again: d.Count, Heal: nothing}, nil
}

func replayMessages(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	feed, err := pick(random, w.Destinations())
	if err != nil {
		return nil, err
	}
	var sent []struct {
		ID string `json:"id"`
	}
	limit := fmt.Sprint(1 + random.IntN(20))
	if err := command(ctx, w, &sent, "messages", "ls", "--feed", feed, "--status", "published", "--since", "30s", "--limit", limit); err != nil {
		return nil, err
	}
	if len(sent) == 0 {
		return nil, errNobody
	}
	args := []string{"replay", "--feed", feed, "--reason", "a consumer lost them", "--yes"}
	for _, m := range sent {
		args = append(args, m.ID)
	}
	if err := command(ctx, w, &done{}, args...); err != nil {
		return nil, err
	}
	return &Running{Target: feed, Detail: fmt.Sprintf("%d messages", len(sent)), Touches: []string{feed}, Again: int64(len(sent)), Heal: nothing}, nil
}

func changeShards(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	feed, err := pick(random, w.Destinations())
	if err != nil {
		return nil, err
	}
	var all []struct {
		Name   string `json:"name"`
		Shards int    `json:"shards"`
	}
	if err := command(ctx, w, &all, "feeds", "ls"); err != nil {
		return nil, err
	}
	before := 0
	for _, f := range all {
		if f.Name == feed {
			before = f.Shards
		}
	}
	if before == 0 {
		return nil, fmt.Errorf("there is no feed %s", feed)
	}
	to := 1 + random.IntN(2*before)
	change := func(ctx context.Context, to int) error {
		return command(ctx, w, &done{}, "feeds", "shards", feed, "--to", fmt.Sprint(to), "--reason", "more relays, or fewer")
	}
	if err := change(ctx, to); err != nil {
		return nil, err
	}
	return &Running{Target: feed, Detail: fmt.Sprintf("%d shards instead of %d", to, before), Touches: []string{feed}, Heal: func(ctx context.Context) error {
		return change(ctx, before)
	}}, nil
}
