package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/phrase"
)

// whose is the value of --feed or --consumer. Messages that a consumer has deferred are in a feed
// of its own, so both flags set a feed.
type whose struct {
	feed *string
	said *string // which of the two flags was given
	name string
}

// addWhose defines both flags. Their common value is the name of a feed.
func addWhose(cmd *cobra.Command, feed *string, only string) {
	var said string
	cmd.Flags().Var(&whose{feed, &said, "feed"}, "feed", only+"of this feed")
	cmd.Flags().Var(&whose{feed, &said, "consumer"}, "consumer", only+"of this consumer; see package inbox")
}

// checkWhose returns an error if the feed or consumer does not exist. Commands that find nothing
// call it, because an empty result would look as if all were well.
func (a *app) checkWhose(ctx context.Context, d operator, feed string) error {
	if feed == "" {
		return nil
	}
	what, name, list, known := "feed", feed, "feeds ls", feedNames
	if consumer := inbox.ConsumerOf(feed); consumer != "" {
		what, name, list, known = "consumer", consumer, "status", consumerNames
	}
	names, err := known(ctx, d)
	if err != nil || slices.Contains(names, name) {
		return err
	}
	there := "there is none"
	if len(names) > 0 {
		there = "there are " + strings.Join(names, ", ")
	}
	text := fmt.Sprintf("there is no %s %q: %s", what, name, there)
	return hintedError{wordedError{admin.ErrNoFeed, text}, "for the list: " + a.next(list)}
}

func (w *whose) Set(value string) error {
	if *w.said != "" && *w.said != w.name {
		return errors.New("--feed and --consumer contradict each other: a consumer is not a feed")
	}
	*w.said, *w.feed = w.name, value
	if w.name == "consumer" {
		if value == "" {
			return errors.New("the name is empty")
		}
		*w.feed = inbox.Feed(value)
	}
	return nil
}

func (w *whose) String() string { return "" }
func (w *whose) Type() string   { return "string" }

// refuseConsumer returns an error for a feed name that is reserved for a consumer.
func refuseConsumer(feed string) error {
	if name := inbox.ConsumerOf(feed); name != "" {
		return usagef("a feed cannot be called %s: the deferred messages of consumer %s are stored under this name", feed, phrase.ShellWord(name))
	}
	return nil
}

// flagFor returns the flag that selects the feed or consumer.
func flagFor(feed string) string {
	if name := inbox.ConsumerOf(feed); name != "" {
		return "--consumer " + phrase.ShellWord(name)
	}
	return "--feed " + phrase.ShellWord(feed)
}

// consumerStatus is the output of "status" for a consumer.
type consumerStatus struct {
	Name     string    `json:"name"`
	Heard    time.Time `json:"heard,omitzero"`    // last heartbeat of a process that runs it,
	Process  string    `json:"process,omitempty"` // and that process
	Deferred int       `json:"deferred"`          // waiting or to be retried
	Dead     int       `json:"dead"`
	Parked   int       `json:"parked"`
	Blocked  int       `json:"blocked"` // keys
	Healthy  bool      `json:"healthy"`
	Problems []problem `json:"problems"`
}

// consumers returns all consumers, by name.
func (a *app) consumers(ctx context.Context, d admin.Gauges) ([]consumerStatus, error) {
	all := []consumerStatus{}
	standing, err := d.Gauges(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range standing.Consumers {
		c := consumerStatus{
			Name: s.Name, Deferred: s.Deferred.Scheduled + s.Deferred.Retry + s.Deferred.Waiting, Dead: s.Deferred.Dead, Parked: s.Deferred.Parked,
			Blocked: s.Deferred.Blocked, Heard: s.Heard, Process: s.Process,
		}
		a.diagnoseConsumer(&c, s.Gone(standing.At))
		all = append(all, c)
	}
	return all, nil
}

// diagnoseConsumer lists the problems of a consumer. The last heartbeat of its processes is overdue
// by gone.
func (a *app) diagnoseConsumer(c *consumerStatus, gone time.Duration) {
	c.Problems = []problem{}
	if gone > 0 {
		c.Problems = append(c.Problems, problem{
			Kind: "no_consumer", Next: a.next("doctor"),
			Text: fmt.Sprintf("no process runs it; the last heartbeat, of %s, was %s ago", c.Process, phrase.Age(gone)),
		})
	}
	if c.Dead > 0 {
		c.Problems = append(c.Problems, problem{Kind: "dead", Text: phrase.Quantity(c.Dead, "dead letter", "dead letters"), Next: a.next("dead ls --consumer", c.Name)})
	}
	if c.Blocked > 0 {
		c.Problems = append(c.Problems, problem{
			Kind: "blocked", Text: phrase.Quantity(c.Blocked, "key is blocked", "keys are blocked"), Next: a.next("keys blocked --consumer", c.Name),
		})
	}
	c.Healthy = len(c.Problems) == 0
}

// listConsumers prints consumers as a table.
func (a *app) listConsumers(all []consumerStatus) error {
	rows := make([][]string, len(all))
	for i, c := range all {
		rows[i] = []string{cell(c.Name, false), fmt.Sprint(c.Deferred), fmt.Sprint(c.Dead), fmt.Sprint(c.Parked), fmt.Sprint(c.Blocked)}
	}
	return a.listing([]string{"CONSUMER", "DEFERRED", "DEAD", "PARKED", "BLOCKED"}, rows, "", nil)
}
