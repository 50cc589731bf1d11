package cli

import (
	"context"
	"fmt"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/phrase"
)

// sampleSize is how many of the affected messages are shown before a change.
const sampleSize = 5

// acted is the result of a change to deferred messages, or of its dry run.
type acted struct {
	Action admin.Act `json:"action"`
	Done   bool      `json:"done"`
	Count  int       `json:"count"`
	Sample []listed  `json:"sample"` // of the affected messages, before the change
}

// act applies an action to the messages that match the filters. If there are several filters, each
// must match at least one message.
func (a *app) act(ctx context.Context, d operator, c change, act admin.Act, filters []admin.Filter) error {
	plan := acted{Action: act, Sample: []listed{}}
	counts := make([]int, len(filters))
	ahead := make([][]listed, len(filters)) // per filter that names a message still in the log: that message, once per feed
	for i, filter := range filters {
		var sample []listed
		var err error
		if counts[i], sample, err = countDeadLetters(ctx, d, filter, sampleSize-len(plan.Sample)); err != nil {
			return err
		}
		if counts[i] == 0 && !filter.ID.IsZero() {
			if sample, err = a.findAhead(ctx, d, act, filter); err != nil {
				return err
			}
			counts[i], ahead[i] = len(sample), sample
		}
		if counts[i] == 0 {
			if err := a.checkWhose(ctx, d, filter.Feed); err != nil {
				return err
			}
		}
		if counts[i] == 0 && filter.Head && filter.Key != "" {
			text := fmt.Sprintf("no message of key %s blocks it", phrase.ShellWord(filter.Key))
			return hintedError{wordedError{admin.ErrNoMessage, text}, "for the list: " + a.next("keys blocked")}
		}
		plan.Count += counts[i]
		plan.Sample = append(plan.Sample, sample...)
	}
	if plan.Count == 0 {
		a.notef("no messages match")
	}
	if plan.Count == 0 || c.dryRun {
		return a.reportAct(plan)
	}
	if !c.yes {
		a.showSample(plan.Count, plan.Sample)
	}
	if err := a.confirm(c.danger, questions[act](phrase.Quantity(plan.Count, "message", "messages"))); err != nil {
		return err
	}
	plan.Count = 0
	for i, filter := range filters {
		if counts[i] == 0 {
			continue
		}
		for _, m := range ahead[i] {
			if err := d.(admin.Excluder).Exclude(ctx, c.by(), act, m.Feed, m.ID); err != nil { //nolint:errcheck,forcetypeassert // findAhead has seen it
				return err
			}
			plan.Count++
		}
		if len(ahead[i]) > 0 {
			a.notef("relays skip message %s from now on; a relay that is already sending it may still deliver it", filter.ID)
			continue
		}
		n, err := d.Act(ctx, c.by(), act, filter, counts[i]) // at most as many as the user has confirmed
		plan.Count += n
		if err != nil {
			a.notef("applied to %s before this error:", phrase.Quantity(plan.Count, "message", "messages"))
			return err
		}
	}
	plan.Done = true
	return a.reportAct(plan)
}

var questions = map[admin.Act]func(messages string) string{
	admin.Retry:   func(m string) string { return "Send " + m + " now?" },
	admin.Skip:    func(m string) string { return "Let later messages overtake " + m + "?" },
	admin.Park:    func(m string) string { return "Park " + m + ", and let later ones go on?" },
	admin.Discard: func(m string) string { return "Remove " + m + " for good?" },
}

// countDeadLetters returns the number of matching messages, and a sample of them.
func countDeadLetters(ctx context.Context, d operator, filter admin.Filter, samples int) (n int, sample []listed, err error) {
	byStatus, err := d.Count(ctx, filter, 0)
	if err != nil {
		return 0, nil, err
	}
	for _, c := range byStatus {
		n += c
	}
	if n > 0 && samples > 0 {
		sample, _, err = readDeadLetters(ctx, d, filter, samples)
	}
	return n, sample, err
}

// showSample prints the affected messages before the confirmation prompt.
func (a *app) showSample(n int, sample []listed) {
	if !a.asks {
		return
	}
	for i := range sample {
		m := &sample[i]
		a.say(fmt.Sprintf("  %s  %s  %s  %s  %s\n", m.ID, cell(m.Feed, false), cell(m.Type, false), cell(m.Key, false), cell(m.Error, false)))
	}
	if n > len(sample) {
		a.say(fmt.Sprintf("  and %d more\n", n-len(sample)))
	}
}

func (a *app) reportAct(r acted) error {
	if a.asJSON {
		return a.json(r)
	}
	if r.Done {
		_, err := fmt.Fprintf(a.out, "%s: %s\n", r.Action, phrase.Quantity(r.Count, "message", "messages"))
		return err
	}
	if r.Count == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(a.out, "would %s %s\n", r.Action, phrase.Quantity(r.Count, "message", "messages")); err != nil {
		return err
	}
	return a.list(r.Sample, false)
}
