package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/postrider/postrider/broker/discard"
	_ "github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

const (
	// old is a message that was enqueued some time ago, deliver what a relay records when it has sent everything.
	old     = "INSERT INTO @schema@.messages (type, key, created_at) VALUES ('old', '1', now() - interval '%')"
	deliver = `INSERT INTO @schema@.checkpoints (feed, shard, n, member, until, lo, starts, s1)
		SELECT feed, shard, n + 1, member, until, 1000, ARRAY(SELECT 1000 FROM pg_snapshot_xip(pg_current_snapshot())), pg_current_snapshot() FROM @schema@.cursors`
	plain = "TEMPLATE template1"
)

// faults are planted one by one, each in a healthy database.
var faults = []struct {
	name, check string
	severity    Severity
	says        string // a part of the finding or of the fix
	own         string // options of a database of its own
	sql         string
	plant       func(*house)
}{
	{name: "not laid out", check: "schema", severity: Problem, says: "postrider migrate up", sql: "DROP TABLE @schema@.migrations"},
	{name: "no version", check: "schema", severity: Problem, says: "does not exist", sql: "DELETE FROM @schema@.migrations"},
	{name: "newer version", check: "schema", severity: Problem, says: "newer program", sql: "INSERT INTO @schema@.migrations VALUES (99, 99)"},
	{name: "other functions", check: "functions", severity: Warning, says: "not those of this program", sql: `CREATE OR REPLACE FUNCTION
		@schema@.functions_version(OUT version integer, OUT digest text) LANGUAGE sql IMMUTABLE AS $$ SELECT 1, 'other' $$`},
	{name: "foreign ledger", check: "identity", severity: Problem, says: "postrider rebase", sql: "UPDATE @schema@.identity SET system_identifier = 1"},
	{name: "role missing", check: "roles", severity: Warning, says: "_relay exists", sql: "DROP OWNED BY @name@_producer; DROP ROLE @name@_producer"},
	{name: "no roles", check: "roles", severity: Info, says: "migrate up --roles",
		sql: "DROP OWNED BY @name@_producer, @name@_relay; DROP ROLE @name@_producer, @name@_relay"},
	{name: "producer without a right", check: "roles", severity: Warning, says: "INSERT of messages.type",
		sql: "REVOKE INSERT (type) ON @schema@.messages FROM @name@_producer"},
	{name: "relay without rights", check: "roles", severity: Warning, says: "SELECT on checkpoints, EXECUTE on sweep()",
		sql: "REVOKE SELECT ON @schema@.checkpoints FROM @name@_relay; REVOKE EXECUTE ON FUNCTION @schema@.sweep() FROM @name@_relay"},
	{name: "everybody writes", check: "public", severity: Problem, says: "REVOKE INSERT ON TABLE", sql: "GRANT INSERT ON @schema@.messages TO PUBLIC"},
	{name: "everybody writes a column", check: "public", severity: Problem, says: "UPDATE", sql: "GRANT UPDATE (payload) ON @schema@.messages_1 TO PUBLIC"},
	{name: "everybody empties slots", check: "public", severity: Problem, says: "EXECUTE", sql: "GRANT EXECUTE ON FUNCTION @schema@.reclaim(bigint) TO PUBLIC"},
	{name: "cached sequence", check: "definitions", severity: Problem, says: "CACHE 1", sql: "ALTER SEQUENCE @schema@.message_seq CACHE 50"},
	{name: "slot unlogged", check: "definitions", severity: Problem, says: "messages_2", sql: "ALTER TABLE @schema@.messages_2 SET UNLOGGED"},
	{name: "generation logged", check: "definitions", severity: Problem, says: "SET UNLOGGED", sql: "ALTER TABLE @schema@.generation SET LOGGED"},
	{name: "settings of a function", check: "plans", severity: Warning, says: "SET enable_seqscan=off", sql: function("read_log", "RESET ALL")},
	{name: "volatile", check: "plans", severity: Problem, says: "STABLE", sql: function("read_log", "VOLATILE")},
	{name: "autovacuum off for a table", check: "autovacuum", severity: Warning, says: "checkpoints",
		sql: "ALTER TABLE @schema@.checkpoints SET (autovacuum_enabled = off)"},
	{name: "vacuum of slots", check: "autovacuum", severity: Warning, says: "messages_0",
		sql: "ALTER TABLE @schema@.messages_0 RESET (autovacuum_vacuum_insert_threshold)"},
	{name: "partition missing", check: "partitions", severity: Problem, says: "PARTITION OF", sql: "DROP TABLE @schema@.messages_1"},
	{name: "index missing", check: "indexes", severity: Problem, says: "CREATE INDEX messages_seq", sql: "DROP INDEX @schema@.messages_seq"},
	{name: "index invalid", check: "indexes", severity: Problem, says: "REINDEX", sql: `SET allow_system_table_mods = on;
		UPDATE pg_index SET indisvalid = false WHERE indexrelid = '@schema@.messages_1_seq_idx'::regclass; RESET allow_system_table_mods`},
	{name: "no fence", check: "indexes", severity: Problem, says: "PRIMARY KEY", sql: "ALTER TABLE @schema@.checkpoints DROP CONSTRAINT checkpoints_pkey"},
	{name: "slot not emptied", check: "ring", severity: Warning, says: "the feed default", plant: func(h *house) {
		h.exec(strings.Replace(old, "%", "4 days", 1))
		h.exec(deliver)
	}},
	{name: "feed behind", check: "lag", severity: Warning, says: "default is 40 h behind", sql: strings.Replace(old, "%", "40 hours", 1)},
	{name: "dead rows", check: "dead-rows", severity: Warning, says: "VACUUM", plant: func(h *house) {
		h.limits.deadTuples = 20
		h.exec("INSERT INTO @schema@.feeds (name) SELECT 'f' || i FROM generate_series(1, 40) i; DELETE FROM @schema@.feeds WHERE name <> 'default'")
		h.await("SELECT n_dead_tup >= 40 FROM pg_stat_user_tables WHERE relid = '@schema@.feeds'::regclass")
	}},
	{name: "slot not frozen", check: "frozen", severity: Warning, says: "GRANT MAINTAIN", plant: func(h *house) {
		h.limits.slotAge = -1
		h.exec("INSERT INTO @schema@.messages (type, slot) SELECT 't', (@schema@.slot_at(now()) + 2) % @schema@.slot_count()")
	}},
	{name: "expired keys", check: "housekeeping", severity: Warning, says: "more than 10 dedup", plant: func(h *house) {
		h.limits.expiredKeys = 10
		h.exec("INSERT INTO @schema@.dedup_keys SELECT 'k' || i, now() - interval '30 days' FROM generate_series(1, 20) i")
	}},
	{name: "size", check: "growth", severity: Info, says: "KB a day", sql: strings.Replace(old, "%", "25 hours", 1)},
	{name: "nobody writes", check: "writers", severity: Info, says: "8 days", sql: "UPDATE @schema@.migrations SET applied_at = now() - interval '8 days'"},
	{name: "no feed", check: "feeds", severity: Warning, says: "no relay has ever run", sql: "DELETE FROM @schema@.feeds"},
	{name: "no relay", check: "feeds", severity: Problem, says: "no relay serves the feed default", sql: "DELETE FROM @schema@.members"},
	{name: "relay gone", check: "feeds", severity: Problem, says: "no relay serves", sql: "SELECT @schema@.leave_feed('default', member) FROM @schema@.members"},
	{name: "paused", check: "feeds", severity: Warning, says: "resume default", sql: "UPDATE @schema@.feeds SET paused = true"},
	{name: "feed only in the file", check: "feeds", severity: Warning, says: "the feed audit is in the file",
		plant: func(h *house) { h.file("{default: , audit: }") }},
	{name: "feed not in the file", check: "feeds", severity: Info, says: "1 relays serve the feed default", plant: func(h *house) {
		h.file("{other: }")
		h.exec("SELECT @schema@.open_feed('other', may_create => true); SELECT @schema@.balance('other', gen_random_uuid(), 'test', '10 minutes')")
	}},
	{name: "destination", check: "destinations", severity: Problem, says: `"orders" of the feed default has accepted nothing`,
		sql: "SELECT @schema@.report('default', '{orders,payments}', '{3,1}', '{queue is full,x}'); SELECT @schema@.report('default', '{payments}', '{0}', '{}')"},
	{name: "dead letters", check: "dead-letters", severity: Warning, says: "1 dead letters", plant: func(h *house) { h.deferMessage("dead", "'infinity'") }},
	{name: "consumer gone", check: "consumers", severity: Warning, says: "the last heartbeat, of host:1, was 5 min ago",
		sql: `WITH c AS (SELECT number FROM @schema@.open_inbox('billing'))
			INSERT INTO @schema@.consumer_heard SELECT number, now() - interval '5 minutes', 'host:1' FROM c`},
	{name: "overdue", check: "overdue", severity: Warning, says: "by 5 min", plant: func(h *house) { h.deferMessage("retry", "now() - interval '5 minutes'") }},
	{name: "no route", check: "routes", severity: Warning, says: "order.lost", plant: func(h *house) {
		h.file("{default: {only: {types: ['order.*']}, routes: [{types: [order.placed]}]}}")
		for _, kind := range []string{"order.placed", "order.lost", "other"} {
			h.exec("SELECT @schema@.enqueue('" + kind + "', payload => '1')")
		}
	}},
	{name: "keys spread over logs", check: "names", severity: Warning, says: "order.paid and order.placed go to d/order and d/paid", plant: func(h *house) {
		h.Logs = []string{"d"}
		h.file("{default: {only: {types: ['order.*']}, routes: [{types: [order.paid], name: paid}, {types: ['*']}]}}")
		for _, kind := range []string{"order.placed", "order.packed", "order.paid", "other"} {
			h.exec("SELECT @schema@.enqueue('" + kind + "', 'order', '1', '1')")
			h.exec("SELECT @schema@.enqueue('order.placed', 'order', '2', '1')")
		}
	}},
	{name: "old transaction", check: "transactions", severity: Warning, says: "pg_terminate_backend", plant: func(h *house) {
		h.limits.transaction = 0
		h.begin("SELECT pg_current_xact_id()")
	}},
	{name: "very old transaction", check: "transactions", severity: Problem, says: "idle in transaction", plant: func(h *house) {
		h.limits.transaction, h.limits.oldTransaction = 0, 0
		h.begin("SELECT pg_current_xact_id()")
	}},
	{name: "prepared transaction", check: "prepared-transactions", severity: Warning, says: "ROLLBACK PREPARED", plant: func(h *house) {
		h.limits.prepared = 0
		h.exec("BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION '@name@'")
		h.t.Cleanup(func() { h.adminExec("ROLLBACK PREPARED '" + h.Schema + "'") })
	}},
	{name: "replication slot", check: "replication-slots", severity: Warning, says: "pg_drop_replication_slot", plant: func(h *house) {
		h.exec("SELECT pg_create_physical_replication_slot('@name@', true)")
		h.t.Cleanup(func() { h.adminExec("SELECT pg_drop_replication_slot('" + h.Schema + "')") })
	}},
	{name: "commits of the database", check: "durability", severity: Problem, says: "ALTER DATABASE", own: plain, sql: alterDatabase("synchronous_commit = off")},
	{name: "commits of a role", check: "durability", severity: Problem, says: "ALTER ROLE",
		sql: "ALTER ROLE @name@_producer SET synchronous_commit = off"},
	{name: "isolation", check: "isolation", severity: Warning, says: "RESET default_transaction_isolation", own: plain,
		sql: alterDatabase("default_transaction_isolation = 'repeatable read'")},
	{name: "time zone", check: "time-zone", severity: Info, says: "Europe/Berlin", own: plain, plant: func(h *house) {
		h.exec(alterDatabase("TimeZone = 'Europe/Berlin'"))
		h.Pool.Reset()
	}},
	{name: "encoding", check: "encoding", severity: Warning, says: "LATIN1", own: "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"},
	{name: "clock", check: "clock", severity: Warning, says: "apart", plant: func(h *house) {
		h.now = func() time.Time { return time.Now().Add(-time.Minute) }
	}},
	{name: "connections", check: "connections", severity: Warning, says: "connections are in use", plant: func(h *house) { h.limits.connections = 0 }},
	{name: "blind user", check: "rights", severity: Info, says: "pg_read_all_stats", plant: func(h *house) { h.as(h.Schema + "_relay") }},
	{name: "locked", check: "identity", severity: Warning, says: "no answer within", plant: func(h *house) {
		h.limits.check = 3 * time.Second // the other checks answer within it, also on a busy machine
		h.begin("LOCK TABLE @schema@.identity IN ACCESS EXCLUSIVE MODE")
	}},
}

func function(name, change string) string {
	return "DO $$ BEGIN EXECUTE (SELECT 'ALTER FUNCTION ' || oid::regprocedure || ' " + change + `' FROM pg_proc
		WHERE proname = '` + name + `' AND pronamespace = '@schema@'::regnamespace); END $$`
}

func alterDatabase(change string) string {
	return "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || $x$ SET " + change + "$x$; END $$"
}

// await waits for the server's statistics to say something.
func (h *house) await(sql string) {
	h.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		var yes bool
		if err := h.Pool.QueryRow(h.t.Context(), h.in(sql)).Scan(&yes); err != nil || time.Now().After(deadline) {
			h.t.Fatalf("%s: %v, %v", sql, yes, err)
		}
		if yes {
			return
		}
	}
}

// TestFaults holds that each fault is reported by its own check, and by no other.
func TestFaults(t *testing.T) {
	need.Alone(t, "sees what other tests do to the server")
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		for _, fault := range faults {
			t.Run(fault.name, func(t *testing.T) {
				address := dsn
				if fault.own != "" {
					address = newDatabase(t, dsn, fault.own)
				}
				h := newHouse(t, address)
				before := h.found() // what others do to the server
				if fault.sql != "" {
					h.exec(fault.sql)
				}
				if fault.plant != nil {
					fault.plant(h)
				}
				after := h.found()
				if !slices.ContainsFunc(after[fault.check], func(f Finding) bool {
					return f.Severity == fault.severity && strings.Contains(f.Finding+f.Fix, fault.says) && f.Why != "" && f.Fix != ""
				}) {
					t.Errorf("%s found %+v, want a %s that says %q", fault.check, after[fault.check], fault.severity, fault.says)
				}
				for check, findings := range after {
					// Any message makes the size worth a word.
					if check != fault.check && len(before[check]) == 0 && (check != "growth" || findings[0].Severity != Info) {
						t.Errorf("found too: %+v", findings)
					}
				}
			})
		}
	})
}

// TestHealthy holds that there is nothing to say about a database in which all is well, also while it works.
func TestHealthy(t *testing.T) {
	need.Alone(t, "sees what other tests do to the server")
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn)
		h.file("{default: }")
		for _, work := range []string{"", "SELECT @schema@.enqueue('t', 'a', i::text, '1') FROM generate_series(1, 100) i", deliver} {
			if work != "" {
				h.exec(work)
			}
			for check, findings := range h.found() {
				if check != "growth" || findings[0].Severity != Info {
					t.Errorf("%s: %+v", check, findings)
				}
			}
		}
	})
}

func TestUnreachable(t *testing.T) {
	pool := pgtest.Pool(t, "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable")
	all := Run(t.Context(), []Database{{Name: "app", Pool: pool, Schema: "postrider"}}, nil)
	if len(all) != 1 || all[0].Check != "connection" || all[0].Severity != Problem || all[0].Subject != "app" {
		t.Errorf("found %+v", all)
	}
}

func TestPooler(t *testing.T) {
	pgtest.EachPooled(t, func(t *testing.T, dsn string) {
		p := newTarget(Database{Pool: pgtest.Pool(t, dsn), Schema: "none", Flags: " --schema none"})
		for range 3 { // also with connections that were used before
			found := byCheck(p.examine(t.Context()))["pooler"]
			if len(found) != 1 || found[0].Severity != Info || !strings.Contains(found[0].Finding, "in transaction mode") {
				t.Errorf("found %+v", found)
			}
		}
	})
}

func TestBrokers(t *testing.T) {
	for _, test := range []struct {
		name, says string
		severity   Severity
		config     config.Destination
	}{
		{"down", "does not answer", Problem, config.Destination{URL: "nats://127.0.0.1:1"}},
		{"unsafe", "doctor.nowhere", Warning, config.Destination{URL: pgtest.Env(t, "POSTRIDER_TEST_NATS")}},
		{"wrong", "cannot be opened", Problem, config.Destination{URL: "nats://127.0.0.1:1", Options: map[string]string{"speed": "high"}}},
		{"silent", "this broker has no checks", OK, config.Destination{URL: "discard:"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := Run(t.Context(), nil, []Destination{{Name: "events", Config: test.config, Names: []string{"doctor.nowhere"}}})
			if len(all) == 0 || all[0].Severity != test.severity || all[0].Check != "broker" || all[0].Subject != "events" ||
				!strings.Contains(all[0].Finding, test.says) {
				t.Errorf("found %+v", all)
			}
		})
	}
}
