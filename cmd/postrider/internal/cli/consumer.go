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

// whose is the value of --feed, or of --consumer: what a consumer has deferred lies in a feed of its own.
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

// checkWhose refuses the name of a feed or consumer that is not there. It is for what found nothing: that would say that all is well.
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
		return errors.New("--feed and --consumer contradict each other: a consumer is no feed")
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

// refuseConsumer keeps names that belong to consumers from being used for feeds of the log.
func refuseConsumer(feed string) error {
	if name := inbox.ConsumerOf(feed); name != "" {
		return usagef("a feed cannot be called %s: that is where the consumer %s keeps what it has deferred", feed, phrase.ShellWord(name))
	}
	return nil
}

// flagFor is the flag that chooses a feed or a consumer, for the next command to type.
func flagFor(feed string) string {
	if name := inbox.ConsumerOf(feed); name != "" {
		return "--consumer " + phrase.ShellWord(name)
	}
	return "--feed " + phrase.ShellWord(feed)
}

// consumerStatus is what "status" says of a consumer.
type consumerStatus struct {
	Name     string    `json:"name"`
	Heard    time.Time `json:"heard,omitzero"`    // when a process last said that it works for it,
	Process  string    `json:"process,omitempty"` // and which
	Deferred int       `json:"deferred"`          // waiting or to be tried again
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
			Name: s.Name, Deferred: s.Aside.Scheduled + s.Aside.Retry + s.Aside.Waiting, Dead: s.Aside.Dead, Parked: s.Aside.Parked,
			Blocked: s.Aside.Blocked, Heard: s.Heard, Process: s.Process,
		}
		a.judgeConsumer(&c, s.Gone(standing.At))
		all = append(all, c)
	}
	return all, nil
}

// judgeConsumer says what is wrong with a consumer for which nobody has worked for so long.
func (a *app) judgeConsumer(c *consumerStatus, gone time.Duration) {
	c.Problems = []problem{}
	if gone > 0 {
		c.Problems = append(c.Problems, problem{
			Kind: "no_consumer", Next: a.next("doctor"),
			Text: fmt.Sprintf("no process works for it; %s was last heard of %s ago", c.Process, phrase.Age(gone)),
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

// listConsumers prints consumers for people.
func (a *app) listConsumers(all []consumerStatus) error {
	rows := make([][]string, len(all))
	for i, c := range all {
		rows[i] = []string{cell(c.Name, false), fmt.Sprint(c.Deferred), fmt.Sprint(c.Dead), fmt.Sprint(c.Parked), fmt.Sprint(c.Blocked)}
	}
	return a.listing([]string{"CONSUMER", "DEFERRED", "DEAD", "PARKED", "BLOCKED"}, rows, "", nil)
}
