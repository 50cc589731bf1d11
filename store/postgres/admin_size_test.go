package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// archive is a log that was filled over six days, with dead letters of the feed "f". That feed has
// settled everything, "behind" nothing, and "new" began with a snapshot behind which no relay has
// read.
type archive struct {
	*house
	size int // when it is full
	dead int // one message in so many is dead
	now  int
}

func newArchive(t *testing.T, dsn string, size, dead int) *archive {
	t.Helper()
	a := &archive{newHouse(t, dsn, postgres.Layout{Period: still.Period}), size, dead, 0}
	for _, feed := range []string{"f", "behind", "new"} {
		a.open(feed).Close(t.Context())
	}
	return a
}

// grow adds messages. One of them, in the first tenth, differs from all others.
func (a *archive) grow(size int) {
	a.t.Helper()
	a.exec(fmt.Sprintf(`INSERT INTO @.messages (id, type, key, topic, tenant_id, payload, created_at, slot)
		SELECT m.id, 't' || CASE WHEN g = %[1]d / 10 THEN '-rare' ELSE '' END, m.key, CASE WHEN g = %[1]d / 10 THEN 'rare' END,
		       CASE WHEN g = %[1]d / 10 THEN 'rare' ELSE 'tenant' || g %% 50 END, repeat('x', 100)::bytea, m.at,
		       (@.slot_at(now()) + 2 + g * 6 / %[1]d) %% 8
		FROM generate_series(%[2]d, %[3]d) g CROSS JOIN LATERAL (
		  SELECT at, 'k' || g %% 100000, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000800' || lpad(to_hex(g), 13, '0'))::uuid
		  FROM (SELECT now() - interval '6 days' + interval '6 days' / %[1]d * g) t(at)) m(at, key, id)`, a.size, a.now+1, size))
	a.exec(fmt.Sprintf(`INSERT INTO @.deferred (feed, seq, shard, status, blocking, available_at, order_key, priority, id, type,
		  schema_version, created_at, occurred_at, payload, last_error)
		SELECT 'f', m.seq, @.shard_of(m.key, 8), 'dead', m.seq %% 100 = 0, 'infinity', m.key, 0, m.id, m.type, 1, m.created_at, m.created_at, m.payload,
		  'HTTP 500 of ' || m.seq
		FROM @.messages m WHERE m.seq > %d AND m.seq %% %d = 0`, a.now, a.dead))
	for _, table := range []string{"messages", "deferred"} { // VACUUM cannot run in a transaction
		a.exec("VACUUM ANALYZE @." + table)
	}
	for _, feed := range []string{"f", "new"} {
		const floor = "(SELECT max(seq) FROM @.messages)"
		a.exec(`INSERT INTO @.checkpoints (feed, shard, n, released, until, lo, starts, s1)
			SELECT c.feed, c.shard, c.n + 1, true, now(), ` + floor + `, ARRAY(SELECT ` + floor + ` FROM pg_snapshot_xip(pg_current_snapshot())), pg_current_snapshot() FROM @.cursors c WHERE c.feed = '` + feed + "'")
	}
	a.now = size
}

// TestAdminCost verifies that gauges, pages of the log and the search for a message do not cost
// more when everything grows.
func TestAdminCost(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		a := newArchive(t, dsn, 120_000, 5)
		var before map[string]int
		for _, size := range []int{a.size / 2, a.size} {
			a.grow(size)
			first := a.idAt(101)
			now := a.costs(t, dsn, map[string]func(*postgres.Admin) error{
				"gauges": func(d *postgres.Admin) error {
					s, err := d.Gauges(t.Context())
					if err == nil {
						a.checkGauges(s)
					}
					return err
				},
				"health": func(d *postgres.Admin) error {
					v, err := d.Health(t.Context())
					if err == nil && (v.Capacity.Used < 3 || v.Tables[0].Name != "messages") {
						t.Errorf("the health are %+v", v)
					}
					return err
				},
				"groups": func(d *postgres.Admin) error {
					g, err := d.Groups(t.Context(), admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, 1000, 10)
					if err == nil && (g.Sampled != 1000 || len(g.Groups) != 1) {
						t.Errorf("the groups are %+v", g)
					}
					return err
				},
				"messages": func(d *postgres.Admin) error {
					page, err := d.Messages(t.Context(), "f", admin.Filter{}, 0, 100)
					if err == nil && (len(page.Items) != 100 || page.Next == 0) {
						t.Errorf("%d messages, next is %d", len(page.Items), page.Next)
					}
					return err
				},
				"dead messages": func(d *postgres.Admin) error {
					page, err := d.Messages(t.Context(), "f", admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, 0, 100)
					if err == nil && len(page.Items) != 100 {
						t.Errorf("%d dead messages", len(page.Items))
					}
					return err
				},
				"pending messages": func(d *postgres.Admin) error {
					page, err := d.Messages(t.Context(), "f", admin.Filter{Statuses: []feeds.Status{feeds.StatusPending}}, 0, 100)
					if err == nil && (len(page.Items) > 0 || page.Next != 0) {
						t.Errorf("%d pending messages, next is %d", len(page.Items), page.Next)
					}
					return err
				},
				"messages of a time": func(d *postgres.Admin) error {
					at := time.Now().Add(-140 * time.Hour)
					page, err := d.Messages(t.Context(), "f", admin.Filter{Since: at, Until: at.Add(time.Minute)}, 0, 10)
					if err == nil && len(page.Items) == 0 {
						t.Error("no messages of a certain minute")
					}
					return err
				},
				"journey": func(d *postgres.Admin) error {
					j, err := d.Journey(t.Context(), first)
					if err == nil && (!j.InLog || len(j.Feeds) != 3) {
						t.Errorf("the journey is %+v", j)
					}
					return err
				},
			})
			for what, buffers := range before {
				limit := buffers*3/2 + 200
				switch what {
				case "health": // it also looks at other objects in the database
					continue
				case "gauges": // it reads rows, not only the index, while another transaction holds vacuum back
					limit = 30_000
				}
				if now[what] > limit {
					t.Errorf("%s: %d buffers, and %d with twice as much of everything", what, buffers, now[what])
				}
			}
			before = now
		}
	})
}

func (a *archive) checkGauges(s *admin.Standing) {
	a.t.Helper()
	for _, f := range s.Feeds {
		switch n := f.Pending.N; f.Name {
		case "behind":
			if f.Pending.Exact || n < int64(a.now)*8/10 || n > int64(a.now)*12/10 || time.Since(f.Oldest) < 140*time.Hour {
				a.t.Errorf("of %d messages %+v are said to be pending, since %v", a.now, f.Pending, f.Oldest)
			}
		default:
			if n != 0 || !f.Pending.Exact || !f.Oldest.IsZero() {
				a.t.Errorf("feed %s: %+v pending", f.Name, f.Pending)
			}
		}
		if f.Name == "f" && (f.Deferred.Dead != 10_000 || f.Deferred.Exact || f.Deferred.Blocked == 0) {
			a.t.Errorf("deferred are %+v", f.Deferred)
		}
	}
}

func (a *archive) idAt(seq int) (id postrider.ID) {
	a.t.Helper()
	var text string
	err := a.pool.QueryRow(a.t.Context(), a.in("SELECT id::text FROM @.messages WHERE seq = $1"), seq).Scan(&text)
	if err == nil {
		id, err = postrider.ParseID(text)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return id
}

// costs calls each function twice and returns how many buffers the second call has touched.
func (a *archive) costs(t *testing.T, dsn string, things map[string]func(*postgres.Admin) error) map[string]int {
	t.Helper()
	var plans plans
	d := a.watched(t, dsn, &plans).db.Admin()
	costs := make(map[string]int)
	for what, do := range things {
		// Take the minimum: others change the catalogue, and the server then looks it up again.
		for n := range 4 {
			plans.clear()
			if err := do(d); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			sum := 0
			for _, root := range plans.all {
				sum += root.Hit + root.Read
				root.walk(func(n plan) {
					of := strings.HasPrefix(n.Relation, "messages_") || n.Relation == "deferred"
					if of && n.Node == "Seq Scan" && (what != "health" || n.Hit+n.Read > 10) { // which ask whether a slot is empty
						t.Errorf("%s: %s on %s", what, n.Node, n.Relation)
					}
				})
			}
			if n == 0 || sum < costs[what] {
				costs[what] = sum
			}
		}
		for _, text := range plans.compiled {
			t.Errorf("%s: compiled: %s", what, text)
		}
	}
	t.Logf("%d messages, buffers: %v", a.now, costs)
	return costs
}
