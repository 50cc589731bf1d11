package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
)

// replayJob is a replay in the JSON output.
type replayJob struct {
	ID        int64        `json:"id"`
	State     string       `json:"state"` // running, paused, done or cancelled
	Dead      bool         `json:"dead"`  // of dead letters; false: of delivered messages
	Filter    admin.Filter `json:"filter"`
	Rate      int          `json:"rate"` // messages a second; 0: no limit
	Who       string       `json:"who"`
	Why       string       `json:"why,omitempty"`
	Created   time.Time    `json:"created"`
	Finished  time.Time    `json:"finished,omitzero"`
	Total     int          `json:"total"`
	Sent      int          `json:"sent"` // queued for the relays
	Delivered int          `json:"delivered"`
	Failed    int          `json:"failed"`
}

func jobsOf(found ...admin.Job) []replayJob {
	all := make([]replayJob, len(found))
	for i := range found {
		j := &found[i]
		all[i] = replayJob{
			j.ID, j.State, j.Dead, j.Filter, j.Rate, j.By.Who, j.By.Why, j.Created, j.Finished, j.Total, j.Sent, j.Delivered, j.Failed,
		}
	}
	return all
}

// reportJob prints a replay.
func (a *app) reportJob(j admin.Job) error {
	if a.asJSON {
		return a.json(jobsOf(j)[0])
	}
	return a.listJobs(jobsOf(j))
}

func (a *app) replayListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List replays, newest first",
		Long: "Lists replays of dead letters and of delivered messages.\n\n" +
			"--json prints an array of objects with: id, state (running, paused, done, cancelled), dead, filter, rate, who, why,\n" +
			"created, finished, total, sent, delivered, failed.",
		Example: "  postrider replay ls --limit 5",
		Args:    noArguments,
		RunE: a.onReplays(func(ctx context.Context, d replayer, _ []string) error {
			if limit <= 0 {
				return usagef("--limit is %d: want at least 1", limit)
			}
			jobs, err := d.Jobs(ctx, limit)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.json(jobsOf(jobs...))
			}
			if len(jobs) == 0 {
				a.notef("there are no replays")
			}
			return a.listJobs(jobsOf(jobs...))
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "at most this many")
	return cmd
}

func (a *app) listJobs(jobs []replayJob) error {
	rows := make([][]string, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		of, rate := "log", "-"
		if j.Dead {
			of = "dead"
		}
		if j.Rate > 0 {
			rate = strconv.Itoa(j.Rate)
		}
		rows[i] = []string{
			strconv.FormatInt(j.ID, 10), j.State, of, cell(j.Filter.Feed, false), ago(j.Created, time.Now()), rate, strconv.Itoa(j.Total),
			strconv.Itoa(j.Sent), strconv.Itoa(j.Delivered), strconv.Itoa(j.Failed), cell(j.Who, false), cell(j.Why, false),
		}
	}
	titles := []string{"REPLAY", "STATE", "OF", "FEED", "AGE", "RATE", "TOTAL", "SENT", "DELIVERED", "FAILED", "BY", "REASON"}
	return a.listing(titles, rows, "STATE", func(state string) int {
		if state == "paused" {
			return yellow
		}
		return plain
	})
}

func (a *app) replayShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show NUMBER",
		Short:   "Show a replay, and how much of it was delivered",
		Long:    "Shows one replay.\n\n--json prints an object with the fields of \"replay ls\".",
		Example: "  postrider replay show 7",
		Args:    named("number of a replay"),
		RunE: a.onJob(func(_ context.Context, _ replayer, job admin.Job) error {
			return a.reportJob(job)
		}),
	}
}

func (a *app) replayResumeCommand() *cobra.Command {
	var c change
	cmd := &cobra.Command{
		Use:   "resume NUMBER",
		Short: "Resume a replay that is paused or was interrupted",
		Long: "Continues a replay from where it was, in this process, until it is complete.\n\n" +
			"--json prints an object with the fields of \"replay ls\".",
		Example: "  postrider replay resume 7",
		Args:    named("number of a replay"),
		RunE: a.onJob(func(ctx context.Context, d replayer, job admin.Job) error {
			if err := d.SetReplay(ctx, c.by(), job.ID, "running"); err != nil {
				return err
			}
			job, err := a.runReplay(ctx, d, job)
			if err != nil {
				return err
			}
			return a.reportJob(job)
		}),
	}
	c.addReason(cmd)
	return cmd
}

func (a *app) replaySetCommand(name, state, short string) *cobra.Command {
	var c change
	cmd := &cobra.Command{
		Use:     name + " NUMBER",
		Short:   short,
		Long:    short + ". The process that runs it exits.\n\n--json prints an object with the fields of \"replay ls\".",
		Example: "  postrider replay " + name + " 7 --reason 'consumer is overloaded'",
		Args:    named("number of a replay"),
		RunE: a.onJob(func(ctx context.Context, d replayer, job admin.Job) error {
			if err := d.SetReplay(ctx, c.by(), job.ID, state); err != nil {
				return err
			}
			a.notef("replay %d is %s", job.ID, state)
			if !a.asJSON {
				return nil
			}
			job, err := d.Job(ctx, job.ID)
			if err != nil {
				return err
			}
			return a.reportJob(job)
		}),
	}
	c.addReason(cmd)
	return cmd
}

// onJob returns the RunE of a command on one replay.
func (a *app) onJob(f func(ctx context.Context, d replayer, job admin.Job) error) func(*cobra.Command, []string) error {
	return a.onReplays(func(ctx context.Context, d replayer, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || id <= 0 {
			return hintedError{usagef("%q is not the number of a replay", args[0]), "for the list: " + a.next("replay ls")}
		}
		job, err := d.Job(ctx, id)
		if err != nil {
			return hintedError{err, "for the list: " + a.next("replay ls")}
		}
		return f(ctx, d, job)
	})
}
