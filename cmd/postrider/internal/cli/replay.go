package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// replaying is the result of a command that starts replays, or of its dry run.
type replaying struct {
	Done   bool        `json:"done"`
	Count  int         `json:"count"`          // messages sent, or, before that, found
	More   bool        `json:"more,omitempty"` // counting stopped at a limit
	Sample []listed    `json:"sample"`
	Jobs   []replayJob `json:"jobs"` // one per ID, or one for all
}

func (a *app) replayCommand() *cobra.Command {
	cmd := a.startReplayCommand(false, &cobra.Command{
		Use:   "replay {ID... | --all}",
		Short: "Replay delivered messages, or manage replays",
		Long: "Sends messages again that a feed has delivered and the log still holds, each once, in the order of the log. This\n" +
			"process queues them for the relays; an interrupt leaves the replay paused. Consumers see the same IDs again.\n\n" +
			"--json prints an object with: done, count, more, sample, jobs; jobs have the fields of \"replay ls\".",
		Example: "  postrider replay --all --feed orders --since 2h --rate 100 --dry-run\n" +
			"  postrider replay --all --feed orders --type order.placed --since 2h --reason 'consumer lost them' --yes\n" +
			"  postrider replay ls",
	})
	cmd.AddCommand(a.replayListCommand(), a.replayShowCommand(), a.replayResumeCommand(),
		a.replaySetCommand("pause", "paused", "Pause a replay"),
		a.replaySetCommand("cancel", "cancelled", "Cancel a replay; messages that were sent stay sent"))
	return cmd
}

func (a *app) deadReplayCommand() *cobra.Command {
	return a.startReplayCommand(true, &cobra.Command{
		Use:   "replay {ID... | --all}",
		Short: "Send dead letters again",
		Long: "Sends dead letters again, with a full set of attempts. This process queues them for the relays, at the given rate if\n" +
			"there is one; an interrupt leaves the replay paused. With --all it sends dead messages that match, with IDs also parked\n" +
			"ones.\n\n" +
			"--json prints an object with: done, count, more, sample, jobs; jobs have the fields of \"replay ls\".",
		Example: "  postrider dead replay 01890a5d-ac96-774b-bcce-b302099a8057\n" +
			"  postrider dead replay --all --error timeout --rate 100 --reason 'consumer fixed' --yes",
	})
}

func (a *app) startReplayCommand(dead bool, cmd *cobra.Command) *cobra.Command {
	var f filterFlags
	var c change
	var all bool
	r := admin.Replay{Dead: dead}
	allowed, otherwise := []feeds.Status{feeds.StatusPublished}, []feeds.Status(nil)
	if dead {
		allowed, otherwise = deadStatuses, []feeds.Status{feeds.StatusDead}
		f.addError(cmd)
		f.addStatus(cmd, deadStatuses)
	} else {
		cmd.Flags().BoolVar(&r.Force, "force", false, "also messages that are older than the inbox window of consumers")
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filters, err := f.choose(args, all, time.Now(), allowed, otherwise)
		if err != nil {
			return err
		}
		if r.Rate < 0 {
			return usagef("--rate is %d: want 0 for no limit, or more", r.Rate)
		}
		if dead && a.db.isClassic() {
			return a.onAdmin(func(ctx context.Context, d operator, _ []string) error {
				return a.retryDead(ctx, d, c, r.Rate, filters)
			})(cmd, args)
		}
		return a.onReplays(func(ctx context.Context, d replayer, _ []string) error {
			if !dead {
				feed, err := a.theFeed(ctx, d, f.Feed)
				if err != nil {
					return err
				}
				for i := range filters {
					filters[i].Feed = feed
				}
			}
			return a.startReplays(ctx, d, c, r, filters)
		})(cmd, args)
	}
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all that match the filters")
	cmd.Flags().IntVar(&r.Rate, "rate", 0, "messages a second; 0: no limit")
	c.addFlags(cmd)
	return cmd
}

func (a *app) startReplays(ctx context.Context, d replayer, c change, r admin.Replay, filters []admin.Filter) error {
	plan := replaying{Sample: []listed{}, Jobs: []replayJob{}}
	for _, filter := range filters {
		n, more, sample, err := countReplay(ctx, d, r.Dead, filter, sampleSize-len(plan.Sample))
		if err != nil {
			return err
		}
		if n == 0 && !filter.ID.IsZero() {
			if r.Dead {
				return a.notDeferred(filter.ID)
			}
			return hintedError{
				wordedError{admin.ErrNoMessage, fmt.Sprintf("feed %s has not delivered message %s, or the log does not hold it", filter.Feed, filter.ID)},
				"for the list: " + a.next("messages ls --status published --feed", filter.Feed),
			}
		}
		if r.Dead && !filter.ID.IsZero() {
			found, err := d.List(ctx, filter, nil, 1)
			if err == nil && len(found) == 1 && found[0].Bare {
				err = a.noContent(&found[0])
			}
			if err != nil {
				return err
			}
		}
		plan.Count, plan.More = plan.Count+n, plan.More || more
		plan.Sample = append(plan.Sample, sample...)
	}
	if plan.Count == 0 {
		a.notef("no messages match")
	}
	if plan.Count == 0 || c.dryRun {
		return a.reportReplays(plan)
	}
	if !c.yes {
		a.showSample(plan.Count, plan.Sample)
	}
	if err := a.confirm(c.danger, "Send "+atLeast(plan.Count, plan.More)+" again?"); err != nil {
		return err
	}
	plan.Count, plan.More = 0, false
	for _, r.Filter = range filters {
		job, err := d.StartReplay(ctx, c.by(), r)
		if err != nil {
			return err
		}
		if job, err = a.runReplay(ctx, d, job); err != nil {
			return err
		}
		plan.Jobs = append(plan.Jobs, jobsOf(job)...)
		plan.Count += job.Sent
	}
	plan.Done = true
	return a.reportReplays(plan)
}

// countedAtMost is the maximum number of messages that are counted before the confirmation, because
// the log can be long.
const countedAtMost = 10_000

// countReplay returns how many messages a replay would send, and a sample of them.
func countReplay(ctx context.Context, d replayer, dead bool, filter admin.Filter, samples int) (n int, more bool, sample []listed, err error) {
	if dead {
		n, sample, err = countDeadLetters(ctx, d, filter, samples)
		return n, false, sample, err
	}
	filter.Statuses = []feeds.Status{feeds.StatusPublished}
	all, more, err := readLog(ctx, d, filter, countedAtMost)
	if err == nil && len(all) == 0 && !filter.ID.IsZero() { // it may be a dead letter whose content is in the log
		var found []feeds.Deferred
		found, err = d.List(ctx, admin.Filter{Feed: filter.Feed, ID: filter.ID}, nil, 1)
		if len(found) == 1 && found[0].Bare {
			all = append(all, listDeferred(&found[0]))
		}
	}
	return len(all), more, all[:min(max(samples, 0), len(all))], err
}

// atLeast describes a number of messages that may be incomplete.
func atLeast(n int, more bool) string {
	if more {
		return fmt.Sprintf("more than %d messages", n)
	}
	return phrase.Quantity(n, "message", "messages")
}

func (a *app) reportReplays(r replaying) error {
	if a.asJSON {
		return a.json(r)
	}
	if r.Done {
		return a.listJobs(r.Jobs)
	}
	if r.Count == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(a.out, "would send %s again\n", atLeast(r.Count, r.More)); err != nil {
		return err
	}
	return a.list(r.Sample, false)
}

// runReplay queues the messages of a job for the relays. If it is interrupted, it leaves the job
// paused.
func (a *app) runReplay(ctx context.Context, d replayer, job admin.Job) (admin.Job, error) {
	resume := "to resume: " + a.next("replay resume", strconv.FormatInt(job.ID, 10))
	start := time.Now()
	ended, err := d.RunReplay(ctx, job.ID, func(j admin.Job) { a.progress(bar(j, job.Sent, time.Since(start))) })
	a.progress("")
	switch {
	case err != nil && ctx.Err() != nil:
		later, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		if err := d.SetReplay(later, admin.By{Who: actor(), Why: "interrupted"}, job.ID, "paused"); err != nil {
			a.notef("replay %d could not be paused: %s", job.ID, a.scrub(err.Error()))
		}
		a.notef("replay %d is paused; %s", job.ID, resume)
		return job, ctx.Err()
	case err != nil:
		return job, hintedError{err, resume}
	case ended.Missing > 0:
		return ended, fmt.Errorf("replay %d has ended without %s that the log no longer holds", job.ID, phrase.Quantity(ended.Missing, "message", "messages"))
	case ended.State != "done":
		return ended, hintedError{fmt.Errorf("an operator has set replay %d to %s", job.ID, ended.State), "for its state: " + a.next("replay show", strconv.FormatInt(job.ID, 10))}
	}
	a.notef("replay %d: %s queued in %s; for the result: %s", job.ID, phrase.Quantity(ended.Sent-job.Sent, "message", "messages"),
		time.Since(start).Round(10*time.Millisecond), a.next("replay show", strconv.FormatInt(job.ID, 10)))
	return d.Job(ctx, job.ID)
}

// bar returns the progress bar of a replay.
func bar(j admin.Job, before int, elapsed time.Duration) string {
	const width = 30
	part := 1.0
	if j.Total > 0 {
		part = min(1, float64(j.Sent)/float64(j.Total))
	}
	full := int(part * width)
	line := fmt.Sprintf("replay %d [%s%s] %3.0f%% %d of %d", j.ID, strings.Repeat("#", full), strings.Repeat(".", width-full), 100*part, j.Sent, j.Total)
	if sent := j.Sent - before; sent > 0 && elapsed > 0 {
		rate := float64(sent) / elapsed.Seconds()
		line += fmt.Sprintf(", %.0f/s, %s left", rate, phrase.Age(time.Duration(float64(max(0, j.Total-j.Sent))/rate*float64(time.Second))))
	}
	return line
}
