package prometheus

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// shown is the state of a database, plus the tenants whose slices are shown by name.
type shown struct {
	*admin.Standing
	tenants  map[string]bool
	problems map[string][]feeds.Problem // by feed
}

// maxProblems is how many names per feed are shown, and maxName how many bytes of each name.
const (
	maxProblems = 20
	maxName     = 200
)

// problemsOf queries the current problems of destinations. The oldest come first, so that the set
// of series is stable.
func problemsOf(ctx context.Context, from admin.Gauges, s *admin.Standing) (map[string][]feeds.Problem, error) {
	ask, ok := from.(admin.Problems)
	if !ok {
		return nil, nil
	}
	all := make(map[string][]feeds.Problem)
	for i := range s.Feeds {
		feed := s.Feeds[i].Name
		problems, err := ask.Problems(ctx, feed)
		if err != nil {
			return nil, err
		}
		problems = slices.DeleteFunc(problems, func(p feeds.Problem) bool { return !p.Over.IsZero() })
		slices.SortFunc(problems, func(a, b feeds.Problem) int {
			return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
		})
		seen := make(map[string]bool) // names that differ only in the part that is cut off
		for _, p := range problems {
			p.Name = label(p.Name[:min(len(p.Name), maxName)])
			if !seen[p.Name] && len(all[feed]) < maxProblems {
				seen[p.Name] = true
				all[feed] = append(all[feed], p)
			}
		}
	}
	return all, nil
}

// maxTenants is how many tenants of a database are shown by name. The others are included in their
// shard.
const maxTenants = 20

// chooseTenants keeps the tenants shown before, so that the set of series is stable, and fills up
// with those that have most pending messages.
func chooseTenants(before map[string]bool, s *admin.Standing) map[string]bool {
	pending := make(map[string]int64)
	for i := range s.Feeds {
		for _, l := range s.Feeds[i].Shards {
			if l.Tenant != "" {
				pending[l.Tenant] += l.Pending.N
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(pending), func(a, b string) int {
		return cmp.Or(cmp.Compare(flag(before[b]), flag(before[a])), cmp.Compare(pending[b], pending[a]), cmp.Compare(a, b))
	})
	chosen := make(map[string]bool, maxTenants)
	for _, name := range names[:min(len(names), maxTenants)] {
		chosen[name] = true
	}
	return chosen
}

// collect exports whether a database is up, and its fresh figures.
func (db *database) collect(to chan<- client.Metric, cfg *Config) {
	standing, age, failing := db.standing.last()
	alive := standing != nil && age <= fresh*cfg.Interval
	// A database that was just added has had no time to answer: that is not an outage.
	if standing != nil || failing || time.Since(db.added) > fresh*cfg.Interval {
		databaseUp.send(to, flag(alive && !failing), db.name)
	}
	if standing != nil {
		figuresAge.send(to, age.Seconds(), db.name)
	}
	if alive {
		standing.send(to, db.name)
	}
	if health, age, _ := db.health.last(); health != nil && age <= fresh*cfg.HealthInterval {
		sendHealth(to, db.name, health)
	}
}

func (s *shown) send(to chan<- client.Metric, database string) {
	logPosition.send(to, float64(s.Enqueued), database)
	for i := range s.Feeds {
		f := &s.Feeds[i]
		pendingMessages.send(to, float64(f.Pending.N), database, f.Name)
		oldestPending.send(to, s.age(f.Oldest), database, f.Name)
		blockedKeys.send(to, float64(f.Deferred.Blocked), database, f.Name)
		for _, p := range s.problems[f.Name] {
			problemAge.send(to, s.age(p.Since), database, f.Name, p.Name)
		}
		feedPaused.send(to, flag(f.Paused), database, f.Name)
		feedRelays.send(to, float64(s.alive(f.Members)), database, f.Name)
		if !f.Canary.IsZero() {
			canaryAge.send(to, s.age(f.Canary), database, f.Name)
		}
		sendDeferred(to, deferredMessages, &f.Deferred, database, f.Name)
		s.sendShards(to, database, f)
	}
	for i := range s.Consumers {
		c := &s.Consumers[i]
		consumerBlocked.send(to, float64(c.Deferred.Blocked), database, c.Name)
		if silent, known := c.Silence(s.At); known {
			consumerSilent.send(to, silent.Seconds(), database, c.Name)
		}
		sendDeferred(to, consumerDeferred, &c.Deferred, database, c.Name)
	}
}

func (s *shown) sendShards(to chan<- client.Metric, database string, f *admin.FeedStanding) {
	type part struct {
		shard  int
		tenant string
	}
	type backlog struct {
		pending int64
		oldest  time.Time
	}
	parts := make(map[part]backlog)
	for _, l := range f.Shards {
		p := part{shard: l.Shard}
		if l.Tenant != "" {
			p.shard = l.Base
		}
		if s.tenants[l.Tenant] {
			p.tenant = l.Tenant
		}
		b := parts[p]
		b.pending += l.Pending.N
		if b.oldest.IsZero() || !l.Oldest.IsZero() && l.Oldest.Before(b.oldest) {
			b.oldest = l.Oldest
		}
		parts[p] = b
	}
	for p, b := range parts {
		shard := strconv.Itoa(p.shard)
		shardPending.send(to, float64(b.pending), database, f.Name, shard, p.tenant)
		shardOldest.send(to, s.age(b.oldest), database, f.Name, shard, p.tenant)
	}
}

// alive counts the relays whose lease has not expired.
func (s *shown) alive(members []admin.Member) (n int) {
	for i := range members {
		if members[i].Until.After(s.At) {
			n++
		}
	}
	return n
}

// age returns the seconds from since to the time of the query, both by the store's clock; 0 if
// since is zero.
func (s *shown) age(since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, s.At.Sub(since).Seconds())
}

func sendDeferred(to chan<- client.Metric, in *family, n *admin.DeferredCount, database, of string) {
	in.send(to, float64(n.Scheduled), database, of, "scheduled")
	in.send(to, float64(n.Retry), database, of, "retry")
	in.send(to, float64(n.Held), database, of, "held")
	in.send(to, float64(n.Waiting), database, of, "waiting")
	in.send(to, float64(n.Dead), database, of, "dead")
	in.send(to, float64(n.Parked), database, of, "parked")
}

func sendHealth(to chan<- client.Metric, database string, v *admin.Health) {
	databaseSize.send(to, float64(v.Size), database)
	for i := range v.Tables {
		t := &v.Tables[i]
		tableSize.send(to, float64(t.Bytes), database, t.Name)
		tableDead.send(to, float64(t.DeadRows), database, t.Name)
	}
	oldestTransaction.send(to, v.OldestTransaction.Seconds(), database)
	oldestSnapshot.send(to, v.OldestSnapshot.Seconds(), database)
	for _, slot := range v.Slots {
		slotRetained.send(to, float64(slot.Bytes), database, slot.Name)
	}
	logSlotsUsed.send(to, float64(v.Capacity.Used), database)
	logSlots.send(to, float64(v.Capacity.Slots), database)
	connections.send(to, float64(v.Connections), database)
	connLimit.send(to, float64(v.MaxConnections), database)
}
