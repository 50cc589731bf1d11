package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/config"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/route"
)

// feedChecks are about feeds, their relays, and what they have set aside.
var feedChecks = []check{
	{"feeds", askFeeds},
	{"lag", askLag},
	{"dead-letters", askDeadLetters},
	{"overdue", askOverdue},
	{"routes", askRoutes},
}

func askFeeds(ctx context.Context, p *patient) ([]Finding, error) {
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
				Why: "Nothing of it is carried, and nothing that it still needs is removed from the log.", Fix: p.command("feeds resume " + f.Name)})
		case f.Relays == 0:
			found = append(found, Finding{Severity: Problem, Finding: fmt.Sprintf("no relay serves the feed %s", f.Name),
				Why: "Nothing of it is carried, and nothing that it still needs is removed from the log.",
				Fix: "postrider relay --feed " + f.Name + "; or, if nobody needs it: " + p.command("feeds rm "+f.Name)})
		}
	}
	for _, plan := range p.Feeds {
		if !slices.ContainsFunc(feeds, func(f feed) bool { return f.Name == plan.Name }) {
			found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("the feed %s is in the file, but no relay has ever served it", plan.Name),
				Why: "Nothing of it is carried. It will begin with the oldest message that the log holds then.", Fix: "postrider relay --feed " + plan.Name})
		}
	}
	if len(feeds) == 0 && len(p.Feeds) == 0 {
		found = append(found, Finding{Severity: Warning, Finding: "there is no feed: no relay was ever here",
			Why: "Nothing is carried, and the log keeps everything for the first feed.", Fix: "postrider relay --to stdout:"})
	}
	return found, nil
}

func askLag(ctx context.Context, p *patient) ([]Finding, error) {
	_, whole, err := p.ring(ctx)
	if err != nil {
		return nil, err
	}
	type feed struct {
		Name   string
		Oldest float64
	}
	// What was in flight when the floor was set is left out: it is at most as old as the oldest transaction.
	feeds, err := rows[feed](ctx, p, `SELECT c.feed, max(date_part('epoch', clock_timestamp() - m.created_at))
		FROM @schema@.cursors c
		CROSS JOIN LATERAL (
		  SELECT created_at FROM @schema@.messages m
		  WHERE m.shard = c.shard AND m.seq > greatest(c.lo, c.last) AND NOT pg_visible_in_snapshot(m.xid, c.s1)
		  ORDER BY m.seq LIMIT 1) m
		GROUP BY 1 HAVING max(clock_timestamp() - m.created_at) > make_interval(secs => $1) ORDER BY 1`, whole.Seconds()/2)
	var found []Finding
	for _, f := range feeds {
		severity := Warning
		if seconds(f.Oldest) > whole {
			severity = Problem
		}
		found = append(found, Finding{Severity: severity,
			Finding: fmt.Sprintf("the feed %s is %s behind", f.Name, age(seconds(f.Oldest))),
			Why:     fmt.Sprintf("Messages are late; and the log, which is meant for %s, cannot remove anything that the feed still needs.", age(whole)),
			Fix:     "look at the log of its relays, and start more; or, if nobody needs it: " + p.command("feeds rm "+f.Name)})
	}
	return found, err
}

type feedCount struct {
	Feed   string
	Count  int64
	Oldest float64
}

func askDeadLetters(ctx context.Context, p *patient) ([]Finding, error) {
	feeds, err := rows[feedCount](ctx, p, `SELECT feed, count(*), 0::float8 FROM @schema@.deferred WHERE status = 'dead' GROUP BY 1 ORDER BY 1`)
	var found []Finding
	for _, f := range feeds {
		found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("%d dead letters %s", f.Count, whose(f.Feed, "in the feed")),
			Why: "They have failed for the last time, and may block the later messages of their keys: somebody has to decide.",
			Fix: p.command("dead ls " + flagOf(f.Feed))})
	}
	return found, err
}

// whose says in words where messages are set aside.
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

func askOverdue(ctx context.Context, p *patient) ([]Finding, error) {
	feeds, err := rows[feedCount](ctx, p, `SELECT feed, count(*), max(date_part('epoch', clock_timestamp() - available_at)) FROM @schema@.deferred
		WHERE status IN ('scheduled', 'retry', 'waiting') AND available_at < clock_timestamp() - make_interval(secs => $1)
		GROUP BY 1 ORDER BY 1`, p.limits.overdue.Seconds())
	var found []Finding
	for _, f := range feeds {
		why, fix := "Nobody sends them: there is no relay, or it is too busy, or its destination is down.", "look at the log of the relays of "+f.Feed
		if strings.HasPrefix(f.Feed, inbox.Feed("")) {
			why, fix = "Nobody tries them: the program with the inbox is not running, or it is too busy.", "look at the log of the program "+whose(f.Feed, "")
		}
		found = append(found, Finding{Severity: Warning,
			Finding: fmt.Sprintf("%d messages that were set aside %s are overdue, the first by %s", f.Count, whose(f.Feed, "of the feed"), age(seconds(f.Oldest))),
			Why:     why,
			Fix:     fix})
	}
	return found, err
}

// askRoutes tries the newest messages on the routes of each feed in the file.
func askRoutes(ctx context.Context, p *patient) ([]Finding, error) {
	if len(p.Feeds) == 0 {
		return nil, nil
	}
	type kind struct{ Type, Topic, Tenant string }
	kinds, err := rows[kind](ctx, p, `SELECT DISTINCT m.type, coalesce(m.topic, ''), coalesce(m.tenant_id, '')
		FROM generate_series(0, @schema@.shard_count() - 1) s
		CROSS JOIN LATERAL (SELECT type, topic, tenant_id FROM @schema@.messages m WHERE m.shard = s AND m.type <> 'postrider.canary'
		                    ORDER BY m.seq DESC LIMIT greatest(10, 10000 / @schema@.shard_count())) m
		ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, plan := range p.Feeds {
		// A table of one rule says what passes the filter.
		filter, err := route.NewTable([]route.Rule{{Match: plan.Only, Drop: true}})
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
			Fix:     fmt.Sprintf("add to feeds.%s.routes: {types: [%s]}; with drop: true if nobody wants them", plan.Name, strings.Join(shown, ", "))})
	}
	return found, nil
}
