package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestProducerRole verifies that a producer can write messages in every way, and do nothing else.
func TestProducerRole(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		h.enqueue(3)
		h.deliverAll("f")
		producer := h.as(dsn, "producer")
		for _, way := range waysToWrite {
			if way.name == "returning" || way.name == "with" {
				continue // returns columns, which needs the right to read
			}
			if err := producer.write(t.Context(), way.write); err != nil {
				t.Errorf("%s: %v", way.name, err)
			}
		}
		producer.mustNotBeAllowed(
			"SELECT type FROM @.messages",
			"SELECT type FROM @.messages_0",
			"SELECT * FROM @.message_status",
			"SELECT * FROM @.cursors",
			"UPDATE @.messages SET type = 'x'",
			"DELETE FROM @.messages",
			"TRUNCATE @.messages",
			"TRUNCATE @.messages_0",
			"LOCK TABLE @.messages IN ACCESS EXCLUSIVE MODE",
			"INSERT INTO @.messages_0 (type) VALUES ('t')",
			"INSERT INTO @.messages (type, xid) VALUES ('t', '1')",
			"INSERT INTO @.messages (type, seq) VALUES ('t', 1)",
			"INSERT INTO @.messages (type, slot) VALUES ('t', 1)",
			"INSERT INTO @.messages (type, created_at) VALUES ('t', now())",
			"INSERT INTO @.messages (type) VALUES ('t') RETURNING seq",
			"COPY @.messages (type, seq) FROM STDIN",
			"SELECT setval('@.message_seq', 1)",
			"SELECT last_value FROM @.message_seq",
			"INSERT INTO @.feeds (name) VALUES ('x')",
			"SELECT @.open_feed('x')",
			"SELECT @.balance('f', gen_random_uuid(), 'x', '1 s')",
			"SELECT @.leave_feed('f', gen_random_uuid())",
			"DELETE FROM @.checkpoints",
			"INSERT INTO @.checkpoints (feed, shard, n, until, lo, starts, s1) VALUES ('f', 0, 9, now(), 0, '{}', '1:1:')",
			"UPDATE @.identity SET system_identifier = 1",
			"SELECT @.reclaim()",
			"SELECT @.sweep()",
			"SELECT @.rebase()",
			"SELECT @.move_in()",
			"CREATE TABLE @.x ()",
			"SELECT * FROM @.deferred",
			"SELECT * FROM @.dedup_keys",
			"SELECT * FROM @.audit",
			"SELECT @.act('discard', '{f}', '{1}')",
		)
	})
}

// TestRelayRole verifies that a relay can do all of its work, and cannot change or remove a
// message.
func TestRelayRole(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		relay := h.as(dsn, "relay")
		relay.deliverAll("f") // creates the feed
		h.exec(fill)
		relay.deliverAll("f")
		relay.mustReclaim(true)
		relay.mustDeliver("f", h.enqueue(20))
		h.enqueue(1)
		relay.addDeadLetter("f")
		relay.exec("SELECT @.report('f', '{orders}', '{1}', '{refused}')")
		// A relay cannot take over the shard of a consumer by claiming it in the ledger.
		relay.exec(`INSERT INTO @.checkpoints (feed, shard, n, member, until, lo, starts, s1)
			VALUES ('inbox/c', 0, 1, '01890a5d-ac96-774b-bcce-b302099a8057', now(), 0, '{}', '1:1:')`)
		err := relay.write(t.Context(), statement(`SELECT @.conclude('inbox/c', '01890a5d-ac96-774b-bcce-b302099a8057',
			'{0}', '{1}', '{true}', '{dead}', '{1}', '{0}', '{x}', '{x}', '{false}', '{NULL}')`))
		if sqlState(err) != "PR004" {
			t.Errorf("a relay concludes what a consumer has deferred: %v", err)
		}

		relay.mustNotBeAllowed(
			"INSERT INTO @.messages (type) VALUES ('t')",
			"SELECT @.enqueue('t', payload => '1')",
			"UPDATE @.messages SET type = 'x'",
			"DELETE FROM @.messages",
			"TRUNCATE @.messages",
			"TRUNCATE @.messages_0",
			"SELECT nextval('@.message_seq')",
			"UPDATE @.checkpoints SET lo = 0",
			"DELETE FROM @.checkpoints",
			"DELETE FROM @.feeds",
			"UPDATE @.identity SET system_identifier = 1",
			"DELETE FROM @.generation",
			"SELECT @.rebase()",
			"SELECT @.move_in()",
			"CREATE TABLE @.x ()",
			"SELECT * FROM @.audit",
			"INSERT INTO @.audit (who, action) VALUES ('x', 'y')",
			"SELECT @.act('discard', '{f}', '{1}')",
			"SELECT @.pause_feed('x', '', 'f', true)",
			"SELECT @.record('x', '', 'y', 'f', 0, NULL)",
			"UPDATE @.feeds SET paused = true",
			"INSERT INTO @.slices VALUES ('f', 9, 0, 't')",
			"UPDATE @.deferred SET payload = ''",
			"DELETE FROM @.deferred",
			"INSERT INTO @.deferred (feed, seq) VALUES ('f', 1)",
			"DELETE FROM @.suspects",
			"DELETE FROM @.problems",
			"DELETE FROM @.job_results",
			"SELECT @.end_attempts('inbox/c', '{1}', '{true}', '{dead}', '{1}', '{0}', '{x}')",
		)
		relay.mustGauge()
		relay.mustNotBeAllowed("SELECT * FROM @.idempotency_kept")
		relay.exec("SELECT * FROM @.message_status")
		relay.exec("SELECT @.canary('1 s')")
		h.exec(restored)
		relay.mustBeForeign("f")
	})
}

// as returns the same log, with the rights of one of its roles.
func (h *house) as(dsn, role string) *house {
	h.t.Helper()
	ctx := h.t.Context()
	migrator, err := h.db.Migrator(postgres.Layout{})
	if err != nil {
		h.t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := migrator.Roles(ctx); err != nil {
			h.t.Fatal(err)
		}
	}
	pgtest.DropRoles(h.t, h.pool, h.cfg.Schema)
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		h.t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["role"] = h.cfg.Schema + "_" + role
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(pool.Close)
	return openHouse(h.t, pool, h.cfg)
}

// TestOperatorRole verifies that an operator can act only in ways that are recorded, and that no
// role can change the audit log.
func TestOperatorRole(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		operator := h.as(dsn, "operator")
		d := operator.db.Admin()
		by := admin.By{Who: "ann", Why: "a test"}
		if err := d.AddFeed(t.Context(), by, "f", true); err != nil {
			t.Error(err)
		}
		if err := d.PauseFeed(t.Context(), by, "f", true); err != nil {
			t.Error(err)
		}
		if _, err := d.Rewind(t.Context(), by, "f", admin.Point{Time: time.Now()}); err != nil {
			t.Error(err)
		}
		if _, err := d.StartReplay(t.Context(), by, admin.Replay{Dead: true}); err != nil {
			t.Error(err)
		}
		if feeds, err := d.ListFeeds(t.Context()); err != nil || len(feeds) != 1 || !feeds[0].Paused {
			t.Errorf("%+v, %v", feeds, err)
		}
		entries, err := d.Audit(t.Context(), "", 0, 10)
		if err != nil || len(entries) != 4 || entries[0].Login == "" {
			t.Errorf("%+v, %v", entries, err)
		}
		operator.mustGauge()
		id := h.enqueue(1)[0]
		if page, err := d.Messages(t.Context(), "f", admin.Filter{Since: time.Now().Add(-time.Hour)}, 0, 10); err != nil || len(page.Items) != 1 {
			t.Errorf("%+v, %v", page, err)
		}
		if j, err := d.Journey(t.Context(), id); err != nil || !j.InLog {
			t.Errorf("%+v, %v", j, err)
		}
		keys := operator.db.IdempotencyAdmin()
		if _, err := keys.List(t.Context(), idempotency.Filter{}, nil, 10); err != nil {
			t.Error(err)
		}
		operator.mustNotBeAllowed(
			"SELECT answer FROM @.idempotency_keys",
			"INSERT INTO @.messages (type) VALUES ('t')",
			"DELETE FROM @.deferred",
			"UPDATE @.feeds SET paused = false",
			"INSERT INTO @.audit (who, action) VALUES ('x', 'y')",
			"DELETE FROM @.audit",
			"SELECT @.rebase()",
			"SELECT @.act('discard', '{f}', '{1}')", // only recorded acts are allowed
			"SELECT @.resend('f', '{1}', 1)",
			"INSERT INTO @.jobs (dead, filter, who, total, until_seq) VALUES (true, '{}', 'x', 0, 0)",
		)
		h.mustNotBeAllowed("UPDATE @.audit SET who = 'x'", "DELETE FROM @.audit", "TRUNCATE @.audit") // not even the owner
	})
}

func (h *house) mustGauge() {
	h.t.Helper()
	d := h.db.Admin()
	if s, err := d.Gauges(h.t.Context()); err != nil || len(s.Feeds) != 1 {
		h.t.Errorf("gauges: %+v, %v", s, err)
	}
	if v, err := d.Health(h.t.Context()); err != nil || v.Size == 0 || len(v.Tables) == 0 || v.MaxConnections == 0 ||
		v.Version != postgres.SchemaVersion() || v.Capacity != (admin.Capacity{Slots: 8, Used: v.Capacity.Used, Period: still.Period}) {
		h.t.Errorf("health: %+v, %v", v, err)
	}
}

func (h *house) mustNotBeAllowed(statements ...string) {
	h.t.Helper()
	for _, sql := range statements {
		err := h.write(h.t.Context(), statement(sql))
		if sqlState(err) != "42501" { // insufficient_privilege
			h.t.Errorf("%s: %v", sql, err)
		}
	}
}
