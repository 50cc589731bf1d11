package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/inbox"
)

// feedChecks examine feeds, their relays, and deferred messages.
var feedChecks = []check{
	{"feeds", askFeeds},
	{"lag", askLag},
	{"destinations", askProblems},
	{"dead-letters", askDeadLetters},
	{"overdue", askOverdue},
	{"consumers", askConsumers},
	{"routes", askRoutes},
	{"names", askNames},
}

func askFeeds(ctx context.Context, p *target) ([]Finding, error) {
	type feed struct {
		Name   string
		Paused bool
		Relays int
	}
	feeds, err := rows[feed](ctx, p, `SELECT f.name, f.paused, (SELECT count(*) FROM (
		  SELECT FROM @schema@.members m WHERE m.feed = f.name AND m.until > clock_timestamp()
		  GROUP BY m.member HAVING NOT bool_or(m.gone)) m)::int
		FROM @schema@.feeds f ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, f := range feeds {
		inFile := slices.ContainsFunc(p.Feeds, func(plan *config.Plan) bool { return plan.Name == f.Name })
		if f.Relays > 0 && p.HasFile && !inFile {
			found = append(found, Finding{Severity: Info, Finding: fmt.Sprintf("%d relays serve the feed %s, which the file does not name", f.Relays, f.Name),
				Why: "They run with another file, perhaps an old one.", Fix: p.in("SELECT name, until FROM @schema@.members WHERE feed = " + quote(f.Name))})
		}
		switch {
		case f.Paused:
			found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("the feed %s is paused", f.Name),
				Why: "Its messages are not delivered, and the log keeps everything that it still needs.", Fix: p.command("feeds resume " + f.Name)})
		case f.Relays == 0:
			found = append(found, Finding{Severity: Problem, Finding: fmt.Sprintf("no relay serves the feed %s", f.Name),
				Why: "Its messages are not delivered, and the log keeps everything that it still needs.",
				Fix: "postrider relay --feed " + f.Name + "; or, if it is not needed: " + p.command("feeds rm "+f.Name)})
		}
	}
	for _, plan := range p.Feeds {
		if !slices.ContainsFunc(feeds, func(f feed) bool { return f.Name == plan.Name }) {
			found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("the feed %s is in the file, but no relay has ever served it", plan.Name),
				Why: "Its messages are not delivered. It will begin with the oldest message that the log holds then.", Fix: "postrider relay --feed " + plan.Name})
		}
	}
	if len(feeds) == 0 && len(p.Feeds) == 0 {
		found = append(found, Finding{Severity: Warning, Finding: "there is no feed: no relay has ever run",
			Why: "Nothing is delivered, and the log keeps everything for the first feed.", Fix: "postrider relay --to stdout:"})
	}
	return found, nil
}

func askLag(ctx context.Context, p *target) ([]Finding, error) {
	_, whole, err := p.ring(ctx)
	if err != nil {
		return nil, err
	}
	type feed struct {
		Name   string
		Oldest float64
	}
	feeds, err := rows[feed](ctx, p, `SELECT l.feed, max(date_part('epoch', clock_timestamp() - l.oldest))
		FROM @schema@.gauge_shards() l
		GROUP BY 1 HAVING max(clock_timestamp() - l.oldest) > make_interval(secs => $1) ORDER BY 1`, whole.Seconds()/2)
	var found []Finding
	for _, f := range feeds {
		severity := Warning
		if seconds(f.Oldest) > whole {
			severity = Problem
		}
		found = append(found, Finding{Severity: severity,
			Finding: fmt.Sprintf("the feed %s is %s behind", f.Name, age(seconds(f.Oldest))),
			Why:     fmt.Sprintf("Messages are late; and the log, which is sized for %s, cannot remove anything that the feed still needs.", age(whole)),
			Fix:     "look at the log of its relays, and start more; or, if it is not needed: " + p.command("feeds rm "+f.Name)})
	}
	return found, err
}

type feedCount struct {
	Feed   string
	Count  int64
	Oldest float64
}

// maxProblems is the maximum number of names over all feeds that are shown.
const maxProblems = 20

// askProblems reports the outages that relays have recorded.
func askProblems(ctx context.Context, p *target) ([]Finding, error) {
	type problem struct {
		Feed, Name, Cause string
		Failures          int64
		Since             float64
	}
	problems, err := rows[problem](ctx, p, `SELECT feed, name, left(cause, 300), failures, date_part('epoch', clock_timestamp() - since)
		FROM @schema@.problems WHERE over IS NULL ORDER BY last DESC, feed, name LIMIT $1`, maxProblems)
	var found []Finding
	for _, r := range problems {
		what, why, status := "the destination of the feed "+r.Feed, "All of its messages wait. None of them is lost, or counted as failed.", "pending"
		if r.Name != "" {
			status = "held"
			what, why = fmt.Sprintf("%q of the feed %s", r.Name, r.Feed), "Its messages wait, those for other names are delivered. None of them is lost, or counted as failed."
		}
		found = append(found, Finding{Severity: Problem,
			Finding: fmt.Sprintf("%s has accepted nothing for %s (%d failures): %s", what, age(seconds(r.Since)), r.Failures, strings.Join(strings.Fields(r.Cause), " ")),
			Why:     why,
			Fix:     "fix the cause at the destination; for the waiting messages: " + p.command("messages ls --status "+status+" --feed "+r.Feed)})
	}
	return found, err
}

func askDeadLetters(ctx context.Context, p *target) ([]Finding, error) {
	feeds, err := rows[feedCount](ctx, p, `SELECT feed, count(*), 0::float8 FROM @schema@.deferred WHERE status = 'dead' GROUP BY 1 ORDER BY 1`)
	var found []Finding
	for _, f := range feeds {
		found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("%d dead letters %s", f.Count, whose(f.Feed, "in the feed")),
			Why: "They have used up their attempts, and may block later messages of their keys: an operator must replay, edit, park or discard them.",
			Fix: p.command("dead ls " + flagOf(f.Feed))})
	}
	return found, err
}

// whose describes the feed or consumer of deferred messages.
func whose(feed, of string) string {
	if consumer, ok := strings.CutPrefix(feed, inbox.Feed("")); ok {
		return "of the consumer " + consumer
	}
	return of + " " + feed
}

func flagOf(feed string) string {
	if consumer, ok := strings.CutPrefix(feed, inbox.Feed("")); ok {
		return "--consumer " + consumer
	}
	return "--feed " + feed
}

func askOverdue(ctx context.Context, p *target) ([]Finding, error) {
	feeds, err := rows[feedCount](ctx, p, `SELECT feed, count(*), max(date_part('epoch', clock_timestamp() - available_at)) FROM @schema@.deferred
		WHERE status IN ('scheduled', 'retry', 'waiting') AND available_at < clock_timestamp() - make_interval(secs => $1)
		GROUP BY 1 ORDER BY 1`, p.limits.overdue.Seconds())
	var found []Finding
	for _, f := range feeds {
		why, fix := "No relay sends them: there is none, or it is overloaded, or its destination is down.", "look at the log of the relays of "+f.Feed
		if strings.HasPrefix(f.Feed, inbox.Feed("")) {
			why, fix = "The program with the inbox does not retry them: it is not running, or it is overloaded.", "look at the log of the program "+whose(f.Feed, "")
		}
		found = append(found, Finding{Severity: Warning,
			Finding: fmt.Sprintf("%d deferred messages %s are overdue, the first by %s", f.Count, whose(f.Feed, "of the feed"), age(seconds(f.Oldest))),
			Why:     why,
			Fix:     fix})
	}
	return found, err
}

func askConsumers(ctx context.Context, p *target) ([]Finding, error) {
	type consumer struct {
		Name, Process string
		Heard, Now    time.Time
	}
	all, err := rows[consumer](ctx, p, `SELECT c.name, h.process, h.at, clock_timestamp()
		FROM @schema@.consumer_heard h JOIN @schema@.consumers c ON c.n = h.consumer ORDER BY 1`)
	var found []Finding
	for _, c := range all {
		standing := admin.ConsumerStanding{Heard: c.Heard}
		gone := standing.Gone(c.Now)
		if gone == 0 {
			continue
		}
		found = append(found, Finding{Severity: Warning,
			Finding: fmt.Sprintf("no process runs the consumer %s; the last heartbeat, of %s, was %s ago", c.Name, c.Process, age(gone)),
			Why:     "Its messages wait at the broker, which keeps them for a limited time; its deferred messages wait too.",
			Fix:     "start the program, or find out why it has stopped; if it was removed for good, this warning ends after a week"})
	}
	return found, err
}

// newest returns a FROM clause that samples the newest messages, restricted by a condition.
func newest(condition string) string {
	return ` FROM (SELECT key, aggregate_type, aggregate_id, type, topic, tenant_id FROM @schema@.messages m
		      ORDER BY m.seq DESC LIMIT 10000) m WHERE m.type <> 'postrider.canary' AND ` + condition + " "
}

// filterOf returns a table of one rule, which matches what passes the filter of a feed.
func filterOf(plan *config.Plan) (*route.Table, error) {
	return route.NewTable([]route.Rule{{Match: plan.Only, Drop: true}})
}

// askRoutes resolves the newest messages with the routes of each feed in the file.
func askRoutes(ctx context.Context, p *target) ([]Finding, error) {
	if len(p.Feeds) == 0 {
		return nil, nil
	}
	type kind struct{ Type, Topic, Tenant string }
	kinds, err := rows[kind](ctx, p, `SELECT DISTINCT m.type, coalesce(m.topic, ''), coalesce(m.tenant_id, '')`+newest("true")+"ORDER BY 1, 2, 3")
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, plan := range p.Feeds {
		filter, err := filterOf(plan)
		if err != nil {
			return nil, err
		}
		var lost []string
		for _, k := range kinds {
			m := &postrider.Message{ID: postrider.NewID(), Type: k.Type, Topic: k.Topic, TenantID: k.Tenant}
			if _, err := filter.Resolve(m); err != nil {
				continue
			}
			if _, err := plan.Table.Resolve(m); errors.Is(err, route.ErrNoRoute) && !slices.Contains(lost, k.Type) {
				lost = append(lost, k.Type)
			}
		}
		if len(lost) == 0 {
			continue
		}
		shown := lost[:min(len(lost), 10)]
		found = append(found, Finding{Severity: Warning,
			Finding: fmt.Sprintf("the feed %s has no route for messages that are in the log: of %s", plan.Name, strings.Join(shown, ", ")),
			Why:     "They are refused, and the later messages of their keys wait behind them.",
			Fix:     fmt.Sprintf("add to feeds.%s.routes: {types: [%s]}; with drop: true if they are not needed", plan.Name, strings.Join(shown, ", "))})
	}
	return found, nil
}

// askNames finds keys among the newest messages that routes spread over several logs.
func askNames(ctx context.Context, p *target) ([]Finding, error) {
	if len(p.Logs) == 0 {
		return nil, nil
	}
	type kind struct{ Key, Aggregate, Type, Topic, Tenant string }
	kinds, err := rows[kind](ctx, p, `SELECT DISTINCT coalesce(m.key, m.aggregate_type || '/' || m.aggregate_id), coalesce(m.aggregate_type, ''), m.type,
		  coalesce(m.topic, ''), coalesce(m.tenant_id, '')`+newest("coalesce(m.key, m.aggregate_id) IS NOT NULL")+"ORDER BY 1, 2, 3, 4, 5")
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, plan := range p.Feeds {
		filter, err := filterOf(plan)
		if err != nil {
			return nil, err
		}
		spread := 0
		var first, key string
		names := make(map[string]string) // the names of the current key, each with a type
		for _, k := range append(kinds, kind{}) {
			if k.Key != key {
				if len(names) > 1 {
					if spread++; first == "" {
						first = fmt.Sprintf("%s go to %s", strings.Join(slices.Sorted(maps.Values(names)), " and "),
							strings.Join(slices.Sorted(maps.Keys(names)), " and "))
					}
				}
				key, names = k.Key, make(map[string]string)
			}
			m := &postrider.Message{ID: postrider.NewID(), Type: k.Type, Topic: k.Topic, TenantID: k.Tenant, AggregateType: k.Aggregate, Key: k.Key}
			if _, err := filter.Resolve(m); err != nil {
				continue
			}
			if d, err := plan.Table.Resolve(m); err == nil && !d.Drop && slices.Contains(p.Logs, d.Destination) {
				names[d.Destination+"/"+cmp.Or(d.Name, k.Topic, k.Aggregate, k.Type)] = k.Type
			}
		}
		if spread > 0 {
			found = append(found, Finding{Severity: Warning,
				Finding: fmt.Sprintf("the feed %s spreads %d keys over several logs: messages of types such as %s", plan.Name, spread, first),
				Why:     "Order is kept within each log, but not between logs: a consumer of both may handle a later message of a key first.",
				Fix: "let one name carry all types of an aggregate: leave out the topic and the name of the route; " +
					"if no consumer needs their order, ignore this"})
		}
	}
	return found, nil
}
