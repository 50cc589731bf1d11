package api

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/internal/live"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/saga"
)

// The thresholds of problems are the same as those of "postrider status".
const (
	lateAfter    = time.Minute
	stalledAfter = 12 * time.Second
)

const (
	problem = "problem"
	warning = "warning"
)

// params are the values in a text, for translations.
type params = map[string]any

// problems returns the problems in a sample that do not belong to a feed or a consumer.
func (d *database) problems(l *live.Look) []Problem {
	all := []Problem{}
	add := func(kind, text string, p params, page, command string) {
		all = append(all, Problem{Kind: kind, Severity: problem, Text: text, Params: p, Page: page, Command: d.command(command)})
	}
	if l.Err != nil {
		add("unreachable", "the database does not answer: the data shown is old", params{"database": d.Name}, "/databases", "doctor")
		return all
	}
	if l.Standing.Foreign {
		add("foreign", "the ledger was written in another database: relays pause", params{}, "/doctor", "rebase --dry-run")
	}
	if len(l.Standing.Feeds) == 0 {
		add("no_feed", "there is no feed: nothing is delivered", params{}, "/feeds", "relay --to ADDRESS")
	}
	return all
}

// slowProblems returns the problems that need further queries, which are cached. A query that fails
// is not an error, so that the result is cached as well.
func (d *database) slowProblems(ctx context.Context) ([]Problem, error) {
	asking, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var all []Problem
	if d.Sagas != nil {
		counts, err := d.Sagas.Count(asking, saga.Filter{Statuses: []saga.Status{saga.Stuck}})
		if err != nil {
			return all, ctx.Err()
		}
		if n := counts[saga.Stuck]; n > 0 {
			all = append(all, Problem{
				Kind: "saga_stuck", Severity: problem, Text: phrase.Quantity(n, "saga is stuck", "sagas are stuck"), Params: params{"n": n},
				Command: d.command("saga ls --status stuck"), Page: "/sagas?status=stuck",
			})
		}
	}
	if d.Reconcilers != nil {
		jobs, err := d.Reconcilers.Jobs(asking)
		if err != nil {
			return all, ctx.Err()
		}
		for i := range jobs {
			if j := &jobs[i]; j.Last.Error != "" {
				all = append(all, Problem{
					Kind: "reconciler_failed", Severity: warning, Text: "the last run of reconciler " + j.Job + " has failed", Params: params{"job": j.Job},
					Command: d.command("reconcile ls"), Page: "/reconcilers",
				})
			}
		}
	}
	return all, nil
}

// problemsOf returns the problems of a feed.
func (d *database) problemsOf(l *live.Look, f *admin.FeedStanding) []Problem {
	all := []Problem{}
	feed := "?feed=" + url.QueryEscape(f.Name)
	add := func(severity, kind, text string, p params, page, command string) {
		all = append(all, Problem{Kind: kind, Severity: severity, Feed: f.Name, Text: text, Params: p, Page: page, Command: command})
	}
	now := l.Standing.At
	detail := "/feeds/" + url.PathEscape(f.Name)
	if f.Paused {
		add(warning, "paused", "it is paused", params{}, detail, d.commandOn("feeds resume", f.Name))
	}
	if len(f.Members) == 0 {
		add(problem, "no_relay", "no relay serves it", params{}, detail, d.command("relay --to ADDRESS --feed", f.Name))
	}
	if wait := now.Sub(f.Canary); !f.Canary.IsZero() && !f.Paused && wait > stalledAfter {
		add(problem, "stalled", fmt.Sprintf("it is stalled, or that far behind: no canary has arrived for %s", phrase.Age(wait)),
			params{"seconds": int(wait.Seconds())}, detail, d.command("doctor"))
	}
	if wait := now.Sub(f.Oldest); !f.Oldest.IsZero() && wait > lateAfter {
		add(problem, "late", fmt.Sprintf("%s to deliver, the oldest for %s", phrase.Quantity(int(f.Pending.N), "message", "messages"), phrase.Age(wait)),
			params{"n": f.Pending.N, "seconds": int(wait.Seconds())}, "/messages"+feed+"&status=pending",
			d.command("messages ls --status pending --feed", f.Name))
	}
	if n := f.Deferred.Dead; n > 0 {
		add(problem, "dead", phrase.Quantity(n, "dead letter", "dead letters"), params{"n": n}, "/dead"+feed, d.command("dead ls --feed", f.Name))
	}
	if n := f.Deferred.Blocked; n > 0 {
		add(problem, "blocked", phrase.Quantity(n, "key is blocked", "keys are blocked"), params{"n": n}, "/keys"+feed,
			d.command("keys blocked --feed", f.Name))
	}
	failing := 0
	for i := range l.Relays {
		if l.Relays[i].Feed == f.Name {
			failing += l.Relays[i].Stats.Failing
		}
	}
	if failing > 0 {
		add(problem, "failing", phrase.Quantity(failing, "shard confirms nothing", "shards confirm nothing")+": the destination does not accept messages",
			params{"n": failing}, detail, d.command("doctor"))
	}
	return all
}

// problemsOfConsumer returns the problems of a consumer.
func (d *database) problemsOfConsumer(c *admin.ConsumerStanding, now time.Time) []Problem {
	all := []Problem{}
	who := "?consumer=" + url.QueryEscape(c.Name)
	if silent := c.Gone(now); silent > 0 {
		all = append(all, Problem{
			Kind: "consumer_gone", Severity: problem, Consumer: c.Name,
			Text:   fmt.Sprintf("no process runs it; the last heartbeat, of %s, was %s ago", c.Process, phrase.Age(silent)),
			Params: params{"seconds": silent.Seconds(), "process": c.Process}, Page: "/consumers", Command: d.command("doctor"),
		})
	}
	if n := c.Deferred.Dead; n > 0 {
		all = append(all, Problem{
			Kind: "consumer_dead", Severity: problem, Consumer: c.Name, Text: phrase.Quantity(n, "dead letter", "dead letters"), Params: params{"n": n},
			Page: "/dead" + who, Command: d.command("dead ls --consumer", c.Name),
		})
	}
	if n := c.Deferred.Blocked; n > 0 {
		all = append(all, Problem{
			Kind: "consumer_blocked", Severity: problem, Consumer: c.Name, Text: phrase.Quantity(n, "key is blocked", "keys are blocked"),
			Params: params{"n": n}, Page: "/keys" + who, Command: d.command("keys blocked --consumer", c.Name),
		})
	}
	return all
}

// urgency is the order of the kinds of problems, worst first.
var urgency = []string{
	"unreachable", "foreign", "no_feed", "stalled", "failing", "no_relay", "consumer_gone", "late", "blocked", "consumer_blocked", "dead", "consumer_dead",
	"saga_stuck", "reconciler_failed", "paused",
}

func worstFirst(all []Problem) {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), // "problem" comes before "warning"
			cmp.Compare(slices.Index(urgency, a.Kind), slices.Index(urgency, b.Kind)))
	})
}
